"""A store tells how much it claimed from processes whose leases ran out, once that is committed."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from support.fakes.ports import FakeClock
from support.worlds.store_world import (
    LEASE,
    a_post,
    a_start,
    a_thread,
    add,
    claim_notices,
    claim_polls,
    claim_requests,
    watched,
)

from bot.domain.requests.audit import AuditAction, AuditEntry
from bot.domain.requests.request import Person
from bot.store.store import Store, open_store

ASKED = AuditEntry(AuditAction.ASKED, Person("UANA", "T1"), "C1", way_in="command")


class Told:
    """The reports of a store."""

    def __init__(self) -> None:
        self.takeovers = 0
        self.entries: list[AuditEntry] = []

    def committed(self, entries: Sequence[AuditEntry], takeovers: int) -> None:
        self.entries += entries
        self.takeovers += takeovers


@asynccontextmanager
async def telling(database: str, clock: FakeClock) -> AsyncIterator[tuple[Store, Told]]:
    told = Told()
    store = await open_store(database, clock=clock, committed=told.committed)
    yield store, told
    await store.close()


async def claim_all(store: Store, owner: str) -> int:
    claims = [
        await claim_requests(store, owner),
        await claim_notices(store, owner),
        await claim_polls(store, owner),
    ]
    return sum(map(len, claims))


async def test_only_expired_claims_of_others_are_taken_over(database: str, clock: FakeClock) -> None:
    async with telling(database, clock) as (store, told):
        await add(store, a_thread(ts="1.1"), a_start(), say=[a_post("p")])
        await watched(store, "t2")
        first = await claim_all(store, "one")
        assert first >= 3
        assert told.takeovers == 0
        assert await claim_all(store, "two") == 0
        clock.advance(LEASE + 1.0)
        assert await claim_all(store, "two") == first
        assert told.takeovers == first
