"""The service as the listeners use it."""

from typing import Protocol

from bot.domain.people import Preference
from bot.domain.requests.new_jobs import NewJob, Written
from bot.domain.requests.request import Action, MessageVersion, Reply


class ServicePort(Protocol):
    """What a person can ask for (bot.service). Each method raises StoreError or NotRecorded if it could not be
    recorded.
    """

    async def start(self, asked: NewJob) -> None:
        """Records a job to start."""

    async def thank(self, thanks: Reply) -> None:
        """Records thanks written in a direct message outside its threads."""

    async def receive(self, reply: Reply) -> bool:
        """Records a message in a thread: a follow-up, a word for Pagehand, or, if it mentions Pagehand and there is no
        job, a job to start. False if the thread has no known job and none is started.
        """

    async def revise(self, reply: Reply) -> bool:
        """Records a message's text after an edit, or its deletion."""

    async def act(self, action: Action) -> bool:
        """Records the action of a button, a word or a reaction. False if its subject is unknown."""

    async def follow_up(self, written: Written) -> bool:
        """Records a follow-up that was not written in the job's thread. False if the job is unknown."""

    async def follow_channel(self, old: str, new: str, at: float) -> None:
        """Records a channel's new id and since when it has it, in seconds."""

    async def introduce(self, team_id: str, channel_id: str) -> None:
        """Records that Pagehand was invited to a channel, where it then introduces itself once."""

    async def is_first_answer(self, version: MessageVersion) -> bool:
        """Records that the writer of a message gets a private answer. False if they already got it."""

    async def draft(self, person_id: str, place: str) -> str:
        """Returns the draft that somebody left in a modal opened here."""

    async def save_draft(self, person_id: str, place: str, text: str) -> None:
        """Saves a draft, or deletes it if it is blank."""

    async def preference(self, person_id: str) -> Preference:
        """Returns a person's preference."""

    async def save_preference(self, person_id: str, preference: Preference) -> None:
        """Saves a person's preference."""

    async def open_home(self, person_id: str, *, page: int = 0) -> None:
        """Publishes somebody's Home now, and from now on whenever it changes."""
