"""The service's interface for tests of what is received: it keeps what it was asked."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from bot.domain.mentions import with_names
from bot.domain.requests import Attachments, Person, Reply


@dataclass
class RecordingService:
    """Keeps each call as a tuple: its name, then what it was given. `fault` is raised, `gate` waited for; `knows`: the
    thread of each reply is that of a job.
    """

    calls: list[tuple[Any, ...]] = field(default_factory=list)
    asked: int = 0
    """How often it was called, with or without success."""
    fault: Exception | None = None
    gate: asyncio.Event | None = None
    knows: bool = True
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once it was called."""

    async def start(self, person: Person, channel_id: str, prompt: str, *, source_key: str) -> None:
        await self._keep("start", person, channel_id, prompt, source_key)

    async def steer(
        self, person: Person, channel_id: str, thread_ts: str, message_ts: str, text: str, *, attachments: Attachments
    ) -> bool:
        also = [attachments] if attachments else []
        await self._keep("steer", person, channel_id, thread_ts, message_ts, text, *also)
        return self.knows

    async def revise(self, reply: Reply) -> bool:
        await self._keep("revise", reply)
        return True

    async def send_new_words(self, person: Person, edited_id: str, *, source_key: str) -> None:
        await self._keep("send_new_words", person, edited_id, source_key)

    async def send_again(self, person: Person, channel_id: str, request_id: str, *, source_key: str) -> None:
        await self._keep("send_again", person, channel_id, request_id, source_key)

    async def show_answer(
        self, person: Person, channel_id: str, thread_id: str, answer_id: str, *, source_key: str
    ) -> None:
        await self._keep("show_answer", person, channel_id, thread_id, answer_id, source_key)

    async def show_prompt(self, person: Person, channel_id: str, thread_id: str, *, source_key: str) -> None:
        await self._keep("show_prompt", person, channel_id, thread_id, source_key)

    async def _keep(self, *call: Any) -> None:
        self.asked += 1
        self.reached.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        self.calls.append(call)

    # -- what it was asked ----------------------------------------------------------------------------------------

    @property
    def starts(self) -> set[str]:
        """The commands by their source keys: the store refuses one that comes again."""
        return {call[4] for call in self.calls if call[0] == "start"}

    @property
    def replies(self) -> set[tuple[str, str]]:
        """When each reply was written, and what it says."""
        return {(call[4], call[5]) for call in self.calls if call[0] == "steer"}

    @property
    def edits(self) -> list[Reply]:
        return [call[1] for call in self.calls if call[0] == "revise"]

    @property
    def clicks(self) -> list[tuple[str, str]]:
        """Each button in a thread, and what it is about."""
        return [(call[0], call[3]) for call in self.calls if call[0] in {"send_again", "show_prompt"}]

    @property
    def words(self) -> list[str]:
        """The words of commands and replies, as people read them."""
        texts = {"start": 3, "steer": 5}
        return [with_names(call[texts[call[0]]], {}) for call in self.calls if call[0] in texts]
