"""Turns: one person's flood delays nobody else, and costs a claim no more than one request of theirs."""

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from sqlalchemy import insert
from support.worlds.store_world import LEASE, a_follow_up, add, settle, watched

from bot.domain.requests.request import RequestState
from bot.store.database.engine import engine_for
from bot.store.request_queue import ClaimedRequest
from bot.store.schema.rows import request_values
from bot.store.schema.tables import requests
from bot.store.store import Store

pytestmark = pytest.mark.promise("floods")

FLOOD = 5_000
_RANDOM = Random(26)  # noqa: S311 - the same turns in each run, guards nothing
TURN = [_RANDOM.random() for _ in range(40)]
FEW = [*TURN[:2], *(pytest.param(turn, marks=pytest.mark.full) for turn in TURN[2:5])]


async def flood(database: str, *, person: str, threads: Sequence[str], state: RequestState) -> None:
    """This many overdue replies of a person."""
    rows = [
        request_values(a_follow_up(f"1700000000.{n:06}", threads[n % len(threads)], person_id=person, state=state))
        | {"due_at": 1_600_000_000.0 + n}
        for n in range(FLOOD)
    ]
    engine = engine_for(database)
    async with engine.begin() as connection:
        await connection.execute(insert(requests), rows)
    await engine.dispose()


async def claim_received(store: Store, limit: int = 8, turn: float = 0.0) -> Sequence[ClaimedRequest]:
    return await store.transact(lambda tx: tx.requests.claim_received("one", lease=LEASE, limit=limit, turn=turn))


async def claim_to_send(store: Store, limit: int, turn: float) -> Sequence[ClaimedRequest]:
    return await store.transact(lambda tx: tx.requests.claim("one", lease=LEASE, limit=limit, turn=turn))


def people(claimed: Sequence[ClaimedRequest]) -> Counter[str]:
    return Counter(item.request.person_id for item in claimed)


@pytest.mark.parametrize("turn", FEW)
async def test_a_single_request_among_thousands_is_prepared_next(store: Store, database: str, turn: float) -> None:
    """Whoever it is by, and in any thread; the one with thousands gets the remaining slots."""
    for name in ("t1", "t2"):
        await watched(store, name)
    await flood(database, person="UMANY", threads=["t1"], state=RequestState.RECEIVED)
    received = RequestState.RECEIVED
    await add(store, a_follow_up("2.1", person_id="UANA", state=received))
    await add(store, a_follow_up("2.2", "t2", person_id="UZOE", state=received))
    await add(store, a_follow_up("2.3", "t2", person_id="UMANY", state=received))
    claimed = await claim_received(store, turn=turn)
    assert people(claimed) == {"UMANY": 6, "UANA": 1, "UZOE": 1}
    assert "t2-2.3" in {item.request.id for item in claimed}
    assert people(await claim_received(store, turn=turn)) == {"UMANY": 8}


@pytest.mark.parametrize("turn", FEW)
async def test_a_single_request_among_thousands_is_sent_next(store: Store, database: str, turn: float) -> None:
    """The thousands are in one thread, where they go one by one, and in many."""
    names = [f"{n:03}" for n in range(50)]
    for name in (*names, "other"):
        await watched(store, name)
    await flood(database, person="UMANY", threads=names, state=RequestState.WAITING)
    await add(store, a_follow_up("2.1", "other", person_id="UANA"))
    claimed = await claim_to_send(store, limit=4, turn=turn)
    assert people(claimed) == {"UMANY": 3, "UANA": 1}
    assert len({item.thread.id for item in claimed}) == 4
    assert {item.request.written_at for item in claimed if item.request.person_id == "UMANY"} <= {
        f"1700000000.{n:06}" for n in range(50)
    }


async def test_a_thread_with_thousands_of_requests_keeps_its_order(store: Store, database: str) -> None:
    """Also those of several people."""
    await watched(store)
    await flood(database, person="UMANY", threads=["t1"], state=RequestState.WAITING)
    await add(store, a_follow_up("1700000000.0000005", person_id="UANA"))
    order = []
    for turn in TURN[:4]:
        [claimed] = await claim_to_send(store, limit=4, turn=turn)
        order.append(claimed.request.written_at)
        await settle(store, claimed.request.id, RequestState.ACCEPTED)
    assert order == ["1700000000.000000", "1700000000.0000005", "1700000000.000001", "1700000000.000002"]
