"""Two processes that tell of one pull request in one Slack thread at once, in real transactions."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import pytest
from support.fakes.ports import FakeClock
from support.worlds.core_world import ANA, Claim, CoreWorld
from support.worlds.store_world import Opener, Sql, on_postgres

from bot.codehosts.pull_request import Check, CheckOutcome
from bot.domain.commands import ThreadWord
from bot.domain.requests.request import Reply
from bot.notices.pull_requests import ChecksFailed, PullRequestMerged, PullRequestNews
from bot.store.store import Store, Transaction

pytestmark = on_postgres

T = TypeVar("T")
LINK = "https://git.example/acme/docs/pull/1"
LINT = Check(name="lint", outcome=CheckOutcome.FAILED)


class MetStore:
    """A store whose next transaction has begun when that of another process does; only then either goes on."""

    def __init__(self, store: Store, meeting: asyncio.Barrier) -> None:
        self.met = False
        self._store = store
        self._meeting = meeting

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, urgent: bool = False) -> T:
        async def meet(tx: Transaction) -> T:
            if not self.met:
                self.met = True
                await self._meeting.wait()
            return await work(tx)

        return await self._store.transact(meet, urgent=urgent)

    async def close(self) -> None:
        await self._store.close()


@pytest.fixture
async def processes(another_store: Opener, clock: FakeClock) -> Sequence[CoreWorld]:
    """Two processes on one database; a job finished with an open pull request, and another begins in its thread."""
    one = CoreWorld("one").on((await another_store()).store, clock)
    ts = await one.started()
    one.code_hosts.show(LINK)
    one.job_api.show("job-1", "completed", LINK)
    await one.pass_time(60)
    await one.service.receive(Reply(ANA, "C1", ts, "5.0", "Another one", word=ThreadWord.NEW))
    await one.settle()
    assert len(one.job_api.jobs) == 2
    return one, CoreWorld("two").on((await another_store()).store, clock, beside=one)


async def at_once(*claims: Claim) -> None:
    """Carries these out, so that their transactions run side by side."""
    meeting = asyncio.Barrier(len(claims))
    stores = [MetStore(claim.world.store, meeting) for claim in claims]
    for claim, store in zip(claims, stores, strict=True):
        claim.worker._store = store
    async with asyncio.timeout(30):
        await asyncio.gather(*(claim.process() for claim in claims))
    assert [store.met for store in stores] == [True] * len(claims)
    for claim in claims:
        claim.worker._store = claim.world.store


def news(world: CoreWorld) -> list[object]:
    return [each.message for each in world.chat.messages if isinstance(each.message, PullRequestNews)]


async def test_two_jobs_with_one_link_that_are_read_at_once_tell_once(processes: Sequence[CoreWorld]) -> None:
    one, two = processes
    one.job_api.show("job-2", "completed", LINK)
    await one.pass_time(60)
    for told, expected in (({"checks": (LINT,)}, ChecksFailed(LINK, ("lint",))), ({"state": "merged"}, None)):
        one.code_hosts.show(LINK, **told)
        one.clock.advance(120)
        at = one.clock.monotonic()
        (first,) = await one.pull_request_poller.claim(1)
        (second,) = await two.pull_request_poller.claim(1)
        assert {first.link, second.link} == {LINK}
        await at_once(Claim(one, one.pull_request_poller, first, at), Claim(two, two.pull_request_poller, second, at))
        await one.settle()
        assert news(one)[-1] == (expected or PullRequestMerged(LINK))
    assert news(one) == [ChecksFailed(LINK, ("lint",)), PullRequestMerged(LINK)]


class OpenStore:
    """A store whose transactions stay open, all done but the commit, until something else has happened."""

    def __init__(self, store: Store, until: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._until = until

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, urgent: bool = False) -> T:
        async def hold(tx: Transaction) -> T:
            done = await work(tx)
            await self._until()
            return done

        return await self._store.transact(hold, urgent=urgent)

    async def close(self) -> None:
        await self._store.close()


async def test_a_link_that_a_newer_job_gets_while_its_news_is_told_is_told_once(
    processes: Sequence[CoreWorld], sql: Sql
) -> None:
    """The newer job neither gets it nor tells of it before the older one's news is committed."""
    one, two = processes
    one.code_hosts.show(LINK, state="merged", ended_by="rae")
    one.job_api.show("job-2", "completed", LINK)
    one.clock.advance(120)
    reading = await one.claim(one.pull_request_poller)

    async def newer() -> None:
        await two.step(two.job_poller)
        await two.step(two.pull_request_poller)

    async def newer_is_done_or_waits() -> None:
        while not task.done():
            if await sql("SELECT count(*) FROM pg_locks WHERE NOT granted") != [(0,)]:
                return

    task = asyncio.create_task(newer())
    one.pull_request_poller._store = OpenStore(one.store, newer_is_done_or_waits)
    await reading.process()
    await task
    one.pull_request_poller._store = one.store
    await two.settle()
    await one.pass_time(120)
    assert news(one) == [PullRequestMerged(LINK, "rae")]
