"""Channel ids that Slack changed: in any order of the changes, all lead to the first id, and the last is the newest."""

import asyncio
import itertools
from collections.abc import Sequence

import pytest
from support.fakes.ports import FakeClock
from support.worlds.store_world import Sql, StoreWorld, a_thread

CHANGES = (("A", "B", 1.0), ("B", "C", 2.0), ("C", "D", 3.0))


async def changed(store: StoreWorld, *changes: tuple[str, str, float]) -> None:
    for old, new, at in changes:
        await store.transact(lambda tx, old=old, new=new, at=at: tx.channel_ids.changed(old, new, at))  # type: ignore[misc]


async def all_of(store: StoreWorld, channel_id: str) -> Sequence[str]:
    return await store.transact(lambda tx: tx.channel_ids.all_of(channel_id))


@pytest.mark.first(order=3)
@pytest.mark.parametrize("order", list(itertools.permutations(CHANGES)))
async def test_id_changes_are_followed_in_any_order_again(
    store: StoreWorld, order: Sequence[tuple[str, str, float]]
) -> None:
    await changed(store, *order, *reversed(order))
    for each in "ABCD":
        assert await all_of(store, each) == ("A", "B", "C", "D")
    assert await all_of(store, "E") == ("E",)


async def test_an_id_that_returns_is_the_newest(store: StoreWorld) -> None:
    await changed(store, ("A", "B", 1.0), ("B", "A", 2.0), ("A", "B", 1.0))
    assert await all_of(store, "B") == ("A", "B", "A")


async def test_two_channels_are_kept_apart(store: StoreWorld) -> None:
    await changed(store, ("A", "B", 1.0), ("X", "Y", 1.0))
    assert (await all_of(store, "B"), await all_of(store, "Y")) == (("A", "B"), ("X", "Y"))


async def test_concurrent_id_changes_are_merged(store: StoreWorld) -> None:
    """Several processes record them, as with PostgreSQL."""
    await asyncio.gather(*(changed(store, change) for change in CHANGES * 3))
    assert await all_of(store, "D") == ("A", "B", "C", "D")


async def test_old_ids_are_deleted_once_no_job_uses_them(store: StoreWorld, sql: Sql, clock: FakeClock) -> None:
    await store.add(a_thread("t1", channel_id="A", ts="1.1"))
    await changed(store, ("A", "B", 1.0), ("X", "Y", 1.0))
    clock.advance(100)
    await changed(store, ("P", "Q", 1.0))

    async def delete() -> int:
        return await store.transact(lambda tx: tx.retention.delete_channel_ids(before=clock.now() - 50, limit=10))

    assert await delete() == 2
    assert (await all_of(store, "B"), await all_of(store, "Y"), await all_of(store, "Q")) == (
        ("A", "B"),
        ("Y",),
        ("P", "Q"),
    )
    clock.advance(100)
    await sql("DELETE FROM polls")
    await sql("DELETE FROM threads")
    assert await delete() == 4
    assert await all_of(store, "B") == ("B",)
