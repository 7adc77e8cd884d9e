"""Requests that are sent as one message, and stops among them, on real databases."""

from dataclasses import replace

import pytest
from support.fakes.ports import FakeClock
from support.worlds.store_world import LEASE, a_follow_up, add, claim_requests, get_request, settle, watched

from bot.domain.requests.request import RequestKind, RequestState
from bot.store.request_queue import ClaimedRequest
from bot.store.store import Store, Transaction

pytestmark = pytest.mark.either_database

FIRST, SECOND, THIRD = (f"1700000000.00000{n}" for n in (1, 2, 3))


async def claimed_as_one(store: Store, *others: str) -> ClaimedRequest:
    """Claims the first follow-up with these."""
    [claimed] = await claim_requests(store)

    async def merge(tx: Transaction) -> None:
        following = {request.id: request for request in await tx.requests.follow_ups_after(claimed.request, limit=9)}
        await tx.requests.merge(claimed.request, [following[name] for name in others], "one", lease=LEASE)

    await store.transact(merge)
    return claimed


async def test_merged_requests_are_claimed_and_counted_like_the_first(store: Store) -> None:
    """Nobody else gets them, and later requests wait for all of them."""
    await watched(store)
    await add(store, *map(a_follow_up, (FIRST, SECOND, THIRD)))
    await claimed_as_one(store, f"t1-{SECOND}")
    second = await get_request(store, f"t1-{SECOND}")
    assert (second.state, second.attempts, second.merged_into) == (RequestState.SENDING, 1, f"t1-{FIRST}")
    await settle(store, f"t1-{FIRST}", RequestState.ACCEPTED)
    assert not await claim_requests(store), "the second is still on its way"
    await settle(store, f"t1-{SECOND}", RequestState.ACCEPTED)
    assert [item.request.id for item in await claim_requests(store)] == [f"t1-{THIRD}"]


async def test_after_the_lease_a_takeover_finds_the_same_merged_requests(store: Store, clock: FakeClock) -> None:
    """None of them is claimed alone; once claimed again, they are known to be in doubt."""
    await watched(store)
    await add(store, *map(a_follow_up, (FIRST, SECOND, THIRD)))
    await claimed_as_one(store, f"t1-{SECOND}")
    clock.advance(LEASE + 1)
    [again] = await claim_requests(store, "two")
    assert (again.request.id, again.uncertain) == (f"t1-{FIRST}", True)

    async def merge(tx: Transaction) -> list[str]:
        others = await tx.requests.merged_into(again.request.id)
        await tx.requests.merge(again.request, others, "two", lease=LEASE)
        return [request.id for request in others]

    assert await store.transact(merge) == [f"t1-{SECOND}"]
    assert (await get_request(store, f"t1-{SECOND}")).uncertain
    assert await store.transact(lambda tx: tx.requests.is_claimed_by(f"t1-{SECOND}", "two"))


async def test_a_stop_is_claimed_before_waiting_and_after_in_flight_requests(store: Store) -> None:
    """Although it has no place among the messages."""
    await watched(store)
    stop = replace(a_follow_up("", id="t1-stop", source_key="stop"), kind=RequestKind.STOP, text="")
    await add(store, *map(a_follow_up, (FIRST, SECOND)))
    [claimed] = await claim_requests(store)
    await add(store, stop)
    assert not await claim_requests(store)
    await settle(store, claimed.request.id, RequestState.ACCEPTED)
    assert [item.request.id for item in await claim_requests(store)] == ["t1-stop"]
    assert not await claim_requests(store)
    await settle(store, "t1-stop", RequestState.ACCEPTED)
    assert [item.request.id for item in await claim_requests(store)] == [f"t1-{SECOND}"]
    assert [each.id for each in await store.transact(lambda tx: tx.requests.stops("t1"))] == ["t1-stop"]
