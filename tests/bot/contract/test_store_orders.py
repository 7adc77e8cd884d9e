"""What is claimed is in the order of its turns, wherever its rows are: a database promises no order of its own, neither
for rows that became due together nor for those that a claim returns. Here the rows are stored the last one first.
"""

from collections.abc import Sequence

import pytest
from support.worlds.store_world import (
    LEASE,
    Sql,
    a_follow_up,
    a_post,
    add,
    claim_notices,
    claim_polls,
    claim_requests,
    deliver_all,
    say,
    watched,
)

from bot.domain.requests.request import RequestState
from bot.store.store import Store

pytestmark = pytest.mark.either_database

THREADS = ("t1", "t2", "t3", "t4")


async def claim_received(store: Store, limit: int) -> Sequence[str]:
    claimed = await store.transact(lambda tx: tx.requests.claim_received("one", lease=LEASE, limit=limit))
    return [item.request.id for item in claimed]


@pytest.mark.parametrize("limit", [1, 3, 9])
async def test_replies_recorded_together_are_prepared_in_the_order_they_were_written(store: Store, limit: int) -> None:
    """As early replies are, and replies that move to another job."""
    await watched(store)
    replies = [a_follow_up(f"5.{number}", state=RequestState.RECEIVED) for number in range(6)]
    await add(store, *reversed(replies))
    order: list[str] = []
    while claimed := await claim_received(store, limit):
        order += claimed
    assert order == [reply.id for reply in replies]


async def test_requests_of_several_threads_are_sent_in_turn(store: Store) -> None:
    for name in reversed(THREADS):
        await watched(store, name)
        await add(store, a_follow_up("5.1", name))
    assert [item.thread.id for item in await claim_requests(store)] == list(THREADS)


async def test_notices_and_polls_that_are_most_overdue_come_first(store: Store, sql: Sql) -> None:
    for name in reversed(THREADS):
        await watched(store, name)
        await deliver_all(store)
    for name in reversed(THREADS):
        await say(store, a_post("a"), thread=name)
    for overdue, name in enumerate(reversed(THREADS)):
        for table in ("notices", "polls"):
            await sql(f"UPDATE {table} SET due_at = {1000 - overdue} WHERE thread_id = '{name}' AND due_at IS NOT NULL")  # noqa: S608 - the test's own names
    assert [item.thread.id for item in await claim_notices(store)] == list(THREADS)
    assert [poll.thread.id for poll in await claim_polls(store)] == list(THREADS)
