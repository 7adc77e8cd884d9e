"""What the listeners ask of the service."""

from typing import Protocol

from bot.domain.people.members import Preference
from bot.domain.requests.new_jobs import NewJob, Written
from bot.domain.requests.request import Action, MessageVersion, Reply


class ServicePort(Protocol):
    """What a person can ask for (bot.service). Each raises StoreUnavailable where it could not be recorded."""

    async def start(self, asked: NewJob) -> None:
        """Records a job to start."""

    async def thank(self, thanks: Reply) -> None:
        """Records thanks in a direct message, outside its threads."""

    async def receive(self, reply: Reply) -> bool:
        """Records a message in a thread: a follow-up, a word for Pagehand, or, where it mentions us and there is no
        job, a job to start. False where the thread has no job that is known and none is started.
        """

    async def revise(self, reply: Reply) -> bool:
        """Records what a message says after an edit, or that it was deleted."""

    async def act(self, action: Action) -> bool:
        """Records what a button, a word or a reaction asks for. False where what it is about is not known."""

    async def follow_up(self, written: Written) -> bool:
        """Records a follow-up that is no message of the job's thread. False where that is not known."""

    async def follow_channel(self, old: str, new: str, at: float) -> None:
        """Records that a channel has another id, since a time in seconds."""

    async def is_first_answer(self, version: MessageVersion) -> bool:
        """Notes that the writer of a message gets a private answer; False where they got it."""

    async def draft(self, person_id: str, place: str) -> str:
        """What somebody typed into a modal that was opened here, and did not submit."""

    async def save_draft(self, person_id: str, place: str, text: str) -> None:
        """Keeps what somebody typed; nothing: forgets it."""

    async def preference(self, person_id: str) -> Preference:
        """What somebody prefers."""

    async def save_preference(self, person_id: str, preference: Preference) -> None:
        """Keeps what somebody prefers."""

    async def open_home(self, person_id: str, *, page: int = 0) -> None:
        """Has somebody's Home published, from now on whenever it changes."""
