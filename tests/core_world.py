"""The core in one process, driven step by step: what is due is worked on until nothing is due."""

from dataclasses import replace
from typing import Any

from fakes import FakeChat, FakeClock, FakeJobApi

from bot.domain.decide import Polling
from bot.domain.models import Person, Thread
from bot.loops.intake import Intake
from bot.loops.loop import Loop, Terms
from bot.loops.outbox import Outbox
from bot.loops.watch import Watch
from bot.ports import Store
from bot.service import Service

ANA = Person("UANA", "T1")
BEN = Person("UBEN", "T1")
EVA = Person("UEVA", "T2")
"""From another workspace."""


class World:
    """Service, intake, watch and outbox, as the application wires them."""

    store: Store

    def __init__(self, owner: str = "one") -> None:
        self.clock = FakeClock()
        self.job_api = FakeJobApi()
        self.chat = FakeChat()
        self.owner = owner
        self.asks_once = False

    def assemble(self) -> "World":
        """Builds the parts; called again for a process that starts anew."""
        calls = Terms(self.owner, self.clock, lease=30.0, call_limit=20.0, recorded=lambda: None)
        chat, polling = replace(calls, call_limit=8.0), Polling()
        self.service = Service(self.store, project_id="docs", recorded=lambda: None)
        self.intake = Intake(self.store, self.job_api, calls, polling=polling, asks_once=self.asks_once)
        self.watch = Watch(self.store, self.job_api, calls, polling=polling, gather=0.0)
        self.outbox = Outbox(self.store, self.chat, chat)
        return self

    def restart(self, owner: str) -> None:
        """A new process, on the same database."""
        self.owner = owner
        self.assemble()

    async def step(self, loop: Loop[Any]) -> int:
        """One round of one loop."""
        taken_at = self.clock.monotonic()
        items = await loop.take(100)
        for item in items:
            await loop.work(item, taken_at)
        return len(items)

    async def settle(self) -> None:
        """Works until nothing is due at this moment."""
        while sum([await self.step(loop) for loop in (self.outbox, self.intake, self.watch)]):
            pass

    async def pass_time(self, seconds: float) -> None:
        """Lets time pass, working whenever something falls due."""
        until, every = self.clock.time + seconds, max(seconds / 20, 1.0)
        while self.clock.time < until:
            self.clock.advance(min(every, until - self.clock.time))
            await self.settle()

    async def started(self, prompt: str = "Do it", *, channel: str = "C1", key: str = "k1") -> str:
        """A job whose card is posted and whose id is known; returns the thread's ts."""
        await self.service.start(ANA, channel, prompt, source_key=key)
        await self.settle()
        return next(message.ts for message in reversed(self.chat.messages) if message.what == "card")

    async def reply(self, thread_ts: str, text: str, at: str, person: Person = ANA, channel: str = "C1") -> None:
        """A reply, recorded."""
        await self.service.steer(person, channel, thread_ts, at, text)

    async def thread(self, ts: str, channel: str = "C1") -> Thread:
        """The thread as the store knows it."""
        thread = await self.store.transact(lambda tx: tx.thread_at(channel, ts))
        assert thread is not None
        return thread
