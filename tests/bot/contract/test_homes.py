"""Homes on a real store: published when they are due, retried after failures, and shown in the workspace."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest
from support.fakes.ports import FakeClock
from support.worlds.store_world import a_thread

from bot.domain.people import HomeContent, Preference
from bot.domain.requests.request import Request
from bot.domain.threads.thread import Thread, ThreadState, Work
from bot.errors import ChatError, ChatNotAllowed, ChatRateLimited, ChatRejected, ChatUncertain
from bot.jobapi.models import Job
from bot.ports.slack import HomeViews
from bot.scheduler.home_publisher import HomePublisher
from bot.scheduler.worker import WorkerSettings
from bot.service import Service
from bot.store.store import Store, Transaction

pytestmark = pytest.mark.either_database


@dataclass
class FakeViews(HomeViews):
    """Records what was published; `faults` are raised one after the other, and the next call waits for a `gate`."""

    published: list[HomeContent] = field(default_factory=list)
    faults: list[ChatError] = field(default_factory=list)
    gate: asyncio.Event | None = None
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    async def publish_home(self, content: HomeContent) -> None:
        if (gate := self.gate) is not None:
            self.gate = None
            self.reached.set()
            await gate.wait()
        if self.faults:
            raise self.faults.pop(0)
        self.published.append(content)


@dataclass
class HomeWorld:
    """A store, the publisher, and what people do."""

    store: Store
    clock: FakeClock
    views: FakeViews
    service: Service
    publisher: HomePublisher

    async def work(self) -> Sequence[HomeContent]:
        """Publishes due Homes, and returns them."""
        before = len(self.views.published)
        for item in await self.publisher.claim(10):
            await self.publisher.process(item, self.clock.monotonic())
        return self.views.published[before:]


def settings_of(owner: str, clock: FakeClock, *, call_timeout: float = 14.0) -> WorkerSettings:
    return WorkerSettings(owner, clock, lease=30.0, call_timeout=call_timeout, on_commit=lambda _: None)


@pytest.fixture
def world(store: Store, clock: FakeClock) -> HomeWorld:
    views = FakeViews()
    publisher = HomePublisher(store, views, settings_of("me", clock))
    return HomeWorld(store, clock, views, Service(store, on_commit=lambda: None), publisher)


async def asked(world: HomeWorld, count: int) -> None:
    """Starts jobs of Ana's, each newer than the one before."""
    for number in range(count):
        thread = a_thread(f"t{number}", created_at=1_700_000_000.0 + number, prompt=f"number {number}")
        await world.store.transact(partial(_add, thread=thread))


async def _add(tx: Transaction, *, thread: Thread, start: Request | None = None) -> None:
    await tx.threads.add(thread)
    if start is not None:
        await tx.requests.add(start)


async def test_a_home_is_published_once_when_it_is_opened(world: HomeWorld) -> None:
    """Later it is due when something changes."""
    await world.service.open_home("UANA")
    (content,) = await world.work()
    assert content.person_id == "UANA"
    assert not [*content.jobs, *content.waiting]
    assert await world.work() == []
    await world.service.save_preference("UANA", Preference("guides", quiet=True))
    (content,) = await world.work()
    assert content.preference == Preference("guides", quiet=True)
    await world.service.save_preference("UBEN", Preference("guides"))
    assert await world.work() == []


async def test_questions_for_the_person_are_on_every_page(world: HomeWorld) -> None:
    """Including the agent's question about an earlier job."""
    question = ThreadState(Job("j", "active"), work=Work(question="digest"))
    await asked(world, 15)
    await world.store.transact(lambda tx: tx.threads.save_state("t0", question, poll_in=None))
    await world.service.open_home("UANA")
    (content,) = await world.work()
    assert [thread.id for thread in content.waiting] == ["t0"]
    assert "t0" not in {thread.id for thread in content.jobs}


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [(ChatUncertain("x"), 30.0), (ChatRateLimited("x", retry_after=7.0), 7.0), (ChatNotAllowed("x"), 300.0)],
)
async def test_a_failed_home_is_retried(world: HomeWorld, fault: ChatError, seconds: float) -> None:
    """If that makes sense; the health reports it meanwhile."""
    world.views.faults = [fault]
    await world.service.open_home("UANA")
    assert await world.work() == []
    assert world.publisher.status().reason == ("" if isinstance(fault, ChatRateLimited) else fault.reason)
    world.clock.advance(seconds - 1)
    assert await world.work() == []
    world.clock.advance(1.5)
    assert len(await world.work()) == 1


async def test_a_home_that_slack_refuses_is_not_retried(world: HomeWorld, caplog: pytest.LogCaptureFixture) -> None:
    """It is skipped until something changes; the log says so once, and the health is unaffected."""
    world.views.faults = [ChatRejected("not_enabled"), ChatRejected("not_enabled")]
    for _ in range(2):
        await world.service.open_home("UANA")
        assert await world.work() == []
    world.clock.advance(3_600.0)
    assert await world.work() == []
    assert world.publisher.status().failing_seconds == 0
    assert caplog.text.count("not_enabled") == 1


async def test_a_home_in_doubt_is_published_again(world: HomeWorld) -> None:
    """A late call may have replaced the newer Home with an older one."""
    await world.service.open_home("UANA")
    (late,) = await world.publisher.claim(10)
    claimed_at = world.clock.monotonic()
    world.views.gate = gate = asyncio.Event()
    publishing = asyncio.create_task(world.publisher.process(late, claimed_at))
    await world.views.reached.wait()
    world.clock.advance(31.0)
    other = HomePublisher(world.store, world.views, settings_of("other", world.clock))
    (item,) = await other.claim(10)
    await other.process(item, world.clock.monotonic())
    gate.set()
    await publishing
    assert len(await world.work()) == 1
    assert await world.work() == []
