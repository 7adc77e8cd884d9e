"""All processes share Slack's limits, and a refused call delays all of them."""

import asyncio

from support.fakes.ports import FakeClock
from support.worlds.store_world import (
    CARD,
    Opener,
    Sql,
    a_post,
    a_reaction,
    a_thread,
    add,
    an_answer,
    claim_notices,
    refuse,
    say,
    use_budget,
)

from bot.domain.slack_limits import SLACK_LIMITS, Limit, SlackLimits, SlackMethod
from bot.notices.notice import CARD_PROGRESSED
from bot.store.retention import OldRows
from bot.store.store import Store

FEW = SlackLimits(
    dict.fromkeys(SLACK_LIMITS.methods, Limit(3, 3.0)), dict.fromkeys(SLACK_LIMITS.channel, Limit(1, 1.0))
)
"""Three calls of each method in any three seconds, and one a second in a channel."""


async def marks(store: Store, count: int) -> None:
    """This many due reactions."""
    await add(store, a_thread(), say=[a_reaction(f"m{number}", "eyes") for number in range(count)])


async def test_claims_stay_within_the_call_budget(store: Store, clock: FakeClock) -> None:
    await marks(store, 9)
    assert len(await claim_notices(store, limit=1, limits=FEW)) == 1
    clock.advance(2.0)
    assert len(await claim_notices(store, "two", limits=FEW)) == 2
    assert not await claim_notices(store, limits=FEW)
    clock.advance(1.0)
    assert len(await claim_notices(store, limits=FEW)) == 1
    clock.advance(2.0)
    assert len(await claim_notices(store, "two", limits=FEW)) == 2


async def test_a_reaction_that_is_late_yields_to_one_in_time(store: Store, clock: FakeClock) -> None:
    await marks(store, 1)
    clock.advance(30.0)
    await add(store, a_thread("in time"), say=[a_reaction("in time", "eyes")])
    claimed = [await claim_notices(store, limit=1, limits=FEW) for _ in range(2)]
    assert [item.thread.id for [item] in claimed] == ["in time", "t1"]


async def test_waiting_for_the_call_budget_is_not_an_attempt(store: Store, clock: FakeClock) -> None:
    await marks(store, 4)
    await claim_notices(store, limits=FEW)
    for _ in range(9):
        assert not await claim_notices(store, limits=FEW)
    clock.advance(3.0)
    [last] = await claim_notices(store, limits=FEW)
    assert last.notice.attempts == 1


async def test_concurrent_claims_share_the_budget(another_store: Opener) -> None:
    stores = [await another_store() for _ in range(3)]
    await marks(stores[0], 30)
    claimed = await asyncio.gather(
        *(claim_notices(store, f"owner {turn}", limits=FEW) for turn in range(4) for store in stores)
    )
    assert sum(map(len, claimed)) == 3
    takes = (use_budget(store, "users.info", lambda budget: budget.take("users.info", 2), FEW) for store in stores)
    assert sorted([grant.calls for grant in await asyncio.gather(*takes)]) == [0, 1, 2]


async def test_a_429_of_a_post_holds_its_channel(store: Store, clock: FakeClock) -> None:
    for name in ("1", "2", "3"):
        await add(store, a_thread(f"t{name}", channel_id=f"C{name}"), say=[CARD])
    await refuse(store, SlackMethod.POST_MESSAGE, "C1", 20.0)
    assert sorted(item.thread.channel_id for item in await claim_notices(store)) == ["C2", "C3"]
    clock.advance(19.0)
    assert not await claim_notices(store, limits=FEW)
    clock.advance(2.0)
    assert len(await claim_notices(store, limits=FEW)) == 1


async def test_a_channel_that_an_older_version_holds_is_held(store: Store, clock: FakeClock, sql: Sql) -> None:
    await add(store, a_thread("t1", channel_id="C1"), say=[CARD])
    held = "INSERT INTO slack_calls (method, channel_id, tat) VALUES ('chat.postMessage', 'C1', :until)"
    await sql(held, until=clock.now() + 20.0)
    assert not await claim_notices(store)
    clock.advance(20.0)
    assert len(await claim_notices(store)) == 1


async def test_a_429_of_a_mark_holds_only_that_kind_in_all_channels(store: Store) -> None:
    await add(store, a_thread("t1", channel_id="C1"), say=[CARD, a_reaction("m", "eyes")])
    await add(store, a_thread("t2", channel_id="C2"), say=[CARD, a_reaction("m", "eyes")])
    await refuse(store, SlackMethod.ADD_REACTION, "C1")
    assert sorted(item.notice.key for item in await claim_notices(store)) == ["t1/card", "t2/card"]


async def test_new_cards_come_before_posts_and_posts_before_changed_cards_and_marks(store: Store) -> None:
    await add(store, a_thread("t1", ts="1.1", card_ts="1.1"), say=[CARD_PROGRESSED, a_reaction("m", "eyes")])
    await add(store, a_thread("t2", channel_id="C2", ts="2.1", card_ts="2.1"), say=[CARD])
    await add(store, a_thread("t3", channel_id="C3"), say=[CARD])
    await add(store, a_thread("t4", channel_id="C4", ts="4.1", card_ts="4.1"), say=[a_post("a")])
    await add(store, a_thread("t5", channel_id="C5", ts="5.1", card_ts="5.1"), say=[an_answer("b", "UANA")])
    keys = [[item.notice.key for item in await claim_notices(store, limit=1)] for _ in range(6)]
    assert keys == [["t5/b"], ["t3/card"], ["t4/a"], ["t2/card"], ["t1/card"], ["t1/m"]]


async def test_posts_do_not_wait_for_card_updates(store: Store) -> None:
    await add(store, a_thread("t1", ts="1.1", card_ts="1.1"), say=[CARD, a_post("a")])
    await refuse(store, SlackMethod.UPDATE, "C1")
    assert [item.notice.key for item in await claim_notices(store)] == ["t1/a"]


async def test_progress_on_the_card_does_not_hide_a_change_of_state(store: Store) -> None:
    await add(store, a_thread("t1", ts="1.1", card_ts="1.1"), say=[CARD, CARD_PROGRESSED])
    progress = SlackLimits(dict.fromkeys(SLACK_LIMITS.methods, Limit(2, 2.0)), {})
    await add(store, a_thread("t2", channel_id="C2", ts="2.1", card_ts="2.1"), say=[CARD_PROGRESSED])
    await claim_notices(store, limit=1, limits=progress)
    assert not await claim_notices(store, limits=progress), "the rest is for new states"
    await say(store, CARD, thread="t2")
    assert [item.notice.key for item in await claim_notices(store, limits=progress)] == ["t2/card"]


async def test_outdated_call_limits_are_deleted(store: Store, clock: FakeClock, sql: Sql) -> None:
    await refuse(store, SlackMethod.POST_MESSAGE, "C1", 1.0)
    await refuse(store, SlackMethod.ADD_REACTION, "C1", 1.0)
    clock.advance(10.0)
    kind = OldRows.SLACK_CALLS
    assert await store.transact(lambda tx: tx.retention.delete_old(kind, before=clock.now(), limit=9)) == 1
    assert await sql("SELECT channel_id FROM slack_calls") == [("",), ("",)]
