"""The service's interface for tests of the listeners: it records its calls."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from bot.domain.messages import with_names
from bot.domain.people import Preference
from bot.domain.requests.new_jobs import NewJob, Written
from bot.domain.requests.request import Action, MessageVersion, Reply

_WORDS = frozenset({"start", "receive"})


@dataclass
class RecordingService:
    """Keeps each call as a tuple of its name and arguments. `fault` is raised, `gate` awaited; `knows`: every
    reply's thread belongs to a job.
    """

    calls: list[tuple[Any, ...]] = field(default_factory=list)
    asked: int = 0
    """How often it was called, successfully or not."""
    fault: Exception | None = None
    gate: asyncio.Event | None = None
    knows: bool = True
    answered: set[MessageVersion] = field(default_factory=set)
    drafts: dict[tuple[str, str], str] = field(default_factory=dict)
    preferences: dict[str, Preference] = field(default_factory=dict)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once it was called."""

    async def start(self, asked: NewJob) -> None:
        await self._keep("start", asked)

    async def thank(self, thanks: Reply) -> None:
        await self._keep("thank", thanks)

    async def receive(self, reply: Reply) -> bool:
        await self._keep("receive", reply)
        return self.knows

    async def is_first_answer(self, version: MessageVersion) -> bool:
        if self.fault is not None:
            raise self.fault
        first = version not in self.answered
        self.answered.add(version)
        return first

    async def revise(self, reply: Reply) -> bool:
        await self._keep("revise", reply)
        return True

    async def act(self, action: Action) -> bool:
        await self._keep("act", action)
        return self.knows

    async def follow_up(self, written: Written) -> bool:
        await self._keep("follow_up", written)
        return self.knows

    async def follow_channel(self, old: str, new: str, at: float) -> None:
        await self._keep("follow_channel", old, new, at)

    async def introduce(self, team_id: str, channel_id: str) -> None:
        await self._keep("introduce", team_id, channel_id)

    async def draft(self, person_id: str, place: str) -> str:
        await self._keep("draft", person_id, place)
        return self.drafts.get((person_id, place), "")

    async def save_draft(self, person_id: str, place: str, text: str) -> None:
        await self._keep("save_draft", person_id, place, text)
        self.drafts[person_id, place] = text

    async def preference(self, person_id: str) -> Preference:
        await self._keep("preference", person_id)
        return self.preferences.get(person_id, Preference())

    async def save_preference(self, person_id: str, preference: Preference) -> None:
        await self._keep("save_preference", person_id, preference)
        self.preferences[person_id] = preference

    async def open_home(self, person_id: str, *, page: int = 0) -> None:
        await self._keep("open_home", person_id, page)

    async def _keep(self, *call: Any) -> None:
        self.asked += 1
        self.reached.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        self.calls.append(call)

    # -- the recorded calls ---------------------------------------------------------------------------------------

    @property
    def started(self) -> list[NewJob]:
        """The requested jobs."""
        return [call[1] for call in self.calls if call[0] == "start"]

    @property
    def starts(self) -> set[str]:
        """The commands by source key: the store refuses a repeated one."""
        return {asked.source_key for asked in self.started}

    @property
    def received(self) -> list[Reply]:
        """The messages received, as often as they came."""
        return [call[1] for call in self.calls if call[0] == "receive"]

    @property
    def replies(self) -> set[tuple[str, str]]:
        """The time and text of each reply."""
        return {(reply.message_ts, reply.text) for reply in self.received}

    @property
    def edits(self) -> list[Reply]:
        """The new texts of edited replies."""
        return [call[1] for call in self.calls if call[0] == "revise"]

    @property
    def actions(self) -> list[Action]:
        """The actions requested by buttons, words and reactions."""
        return [call[1] for call in self.calls if call[0] == "act"]

    @property
    def clicks(self) -> list[tuple[str, str]]:
        """Each button in a thread and its subject."""
        return [(action.kind.value, action.argument or action.thread_id) for action in self.actions]

    @property
    def words(self) -> list[str]:
        """The text of commands and replies in readable form."""
        texts = [call[1].prompt if call[0] == "start" else call[1].text for call in self.calls if call[0] in _WORDS]
        return [with_names(text, {}) for text in texts]
