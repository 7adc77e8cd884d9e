"""What the listeners ask of the rest of Pagehand."""

from typing import Protocol

from bot.domain.requests import Attachments, Person, Reply


class ServicePort(Protocol):
    """What a person can ask for (bot.service). Each raises StoreUnavailable where it could not be recorded."""

    async def start(self, person: Person, channel_id: str, prompt: str, *, source_key: str) -> None:
        """Records a job to start."""

    async def steer(
        self, person: Person, channel_id: str, thread_ts: str, message_ts: str, text: str, *, attachments: Attachments
    ) -> bool:
        """Records a reply; False where `thread_ts` is not the thread of a job that is known."""

    async def revise(self, reply: Reply) -> bool:
        """Records what a reply says after an edit, or that it was deleted."""

    async def send_again(self, person: Person, channel_id: str, request_id: str, *, source_key: str) -> None:
        """Sends a request once more."""

    async def send_new_words(self, person: Person, edited_id: str, *, source_key: str) -> None:
        """Sends what a reply says after an edit."""

    async def show_answer(
        self, person: Person, channel_id: str, thread_id: str, answer_id: str, *, source_key: str
    ) -> None:
        """Shows a person the whole of an agent's answer."""

    async def show_prompt(self, person: Person, channel_id: str, thread_id: str, *, source_key: str) -> None:
        """Shows a person the whole of a request."""
