"""Hourly limits: only allowed requests count, once, also under concurrency."""

import asyncio
from collections.abc import Sequence

import pytest
from support.fakes.ports import FakeClock
from support.worlds.core_world import ANA, CoreWorld
from support.worlds.store_world import Opener, Sql

from bot.domain.people.permissions import PermissionRules
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import WayIn
from bot.store.store import Store, Transaction

pytestmark = pytest.mark.promise("hourly limit")

HOUR = 3600.0


async def ask(store: Store, request_id: str, *, person: str = "UANA", limit: int = 2) -> float | None:
    """Counts a request if its person may make it; otherwise returns when they may."""

    async def work(tx: Transaction) -> float | None:
        free_at = await tx.limits.free_at(person, request_id, limit=limit, within=HOUR)
        if free_at is None:
            await tx.limits.count(person, request_id)
        return free_at

    return await store.transact(work)


async def test_the_hourly_limit_frees_up_when_the_oldest_is_an_hour_old(store: Store, clock: FakeClock) -> None:
    """At exactly the announced time."""
    begin = clock.now()
    assert await ask(store, "r1") is None
    clock.advance(60)
    assert await ask(store, "r2") is None
    assert await ask(store, "r3") == begin + HOUR
    assert await ask(store, "r3", person="UBEN") is None
    clock.advance(HOUR - 61)
    assert await ask(store, "r4") == begin + HOUR
    clock.advance(1)
    assert await ask(store, "r4") is None
    assert await ask(store, "r5") == begin + 60 + HOUR


async def test_a_counted_request_is_neither_recounted_nor_refused(store: Store, clock: FakeClock) -> None:
    """It is checked again after its project was chosen, or after an edit."""
    for _ in range(3):
        assert await ask(store, "r1", limit=1) is None
        clock.advance(10)
    assert await ask(store, "r2", limit=1) == clock.now() - 30 + HOUR


async def test_a_lowered_limit_counts_earlier_requests(store: Store, clock: FakeClock) -> None:
    """Enough of them must be an hour old to leave fewer than the new limit."""
    begin = clock.now()
    for number in range(5):
        assert await ask(store, f"r{number}", limit=0) is None
        clock.advance(1)
    assert await ask(store, "r5", limit=2) == begin + 3 + HOUR


async def test_withdrawn_requests_do_not_count(store: Store) -> None:
    """Neither do requests that are only checked."""

    async def fails(tx: Transaction) -> None:
        assert await tx.limits.free_at("UANA", "r1", limit=1, within=HOUR) is None
        await tx.limits.count("UANA", "r1")
        raise KeyError

    for _ in range(2):
        with pytest.raises(KeyError):
            await store.transact(fails)
    assert await ask(store, "r2", limit=1) is None


@pytest.fixture
async def stores(another_store: Opener) -> Sequence[Store]:
    """As several processes would have them."""
    return [await another_store() for _ in range(3)]


async def test_the_limit_holds_under_concurrency(stores: Sequence[Store]) -> None:
    """Two people in three processes each get exactly the limit."""
    asked = [
        (person, ask(stores[number % 3], f"{person}{number}", person=person, limit=5))
        for number in range(24)
        for person in ("UANA", "UBEN")
    ]
    free_at = await asyncio.gather(*(each for _, each in asked))
    let_through = [person for (person, _), each in zip(asked, free_at, strict=True) if each is None]
    assert sorted(let_through) == ["UANA"] * 5 + ["UBEN"] * 5


async def test_the_hourly_limit_holds_for_requests_prepared_concurrently(
    stores: Sequence[Store], sql: Sql, clock: FakeClock
) -> None:
    """In two processes, before either has committed."""
    worlds = [CoreWorld(owner) for owner in ("one", "two")]
    for world, its_store in zip(worlds, stores, strict=False):
        world.store, world.clock, world.rules = its_store, clock, PermissionRules("T1", hourly_limit=2)
        world.assemble()
    for number in range(12):
        await worlds[0].service.start(NewJob(ANA, "C1", f"job {number}", f"k{number}", WayIn.COMMAND))
    claimed = [(world, await world.request_preparer.claim(6)) for world in worlds]
    assert [len(items) for _, items in claimed] == [6, 6]
    await asyncio.gather(
        *(world.request_preparer.process(item, clock.monotonic()) for world, items in claimed for item in items)
    )
    found = await sql("SELECT state, count(*) FROM requests GROUP BY state ORDER BY state")
    assert found == [("rejected", 10), ("waiting", 2)]
