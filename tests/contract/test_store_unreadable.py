"""A row that can't be read is set aside with its reason, once; everything else goes on."""

import logging

import pytest
from store_world import (
    CARD,
    Sql,
    a_follow_up,
    a_post,
    a_start,
    a_thread,
    add,
    claim_notices,
    claim_requests,
    claim_watches,
    deliver_all,
    watched,
)

from bot.domain.models import Person
from bot.errors import StoreError
from bot.ports import Store
from bot.service import Service

BROKEN_KNOWN = ["{", "[]", "null", '{"round": "many"}', '{"trouble": "bad mood"}', '{"job": {"id": 5}}', "\ufffd"]
BROKEN_FACTS = ["", "[1]", '{"a": {"b": 1}}', '{"a": "\\ud800"}', "NaN"]


async def test_an_unknown_word_in_a_notice_is_set_aside(
    store: Store, sql: Sql, caplog: pytest.LogCaptureFixture
) -> None:
    await add(store, a_thread("t1"), say=[a_post("a"), a_post("b")])
    await add(store, a_thread("t2"), say=[CARD])
    await sql("UPDATE notices SET what = 'shrug' WHERE key = 't1/a'")
    assert [item.notice.key for item in await claim_notices(store)] == ["t2/card"]
    assert [item.notice.key for item in await claim_notices(store)] == ["t1/b"]
    [(state, problem)] = await sql("SELECT state, problem FROM notices WHERE key = 't1/a'")
    assert state == "given_up"
    assert "can't be read" in problem
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 1


@pytest.mark.parametrize("facts", BROKEN_FACTS)
async def test_broken_facts_are_set_aside(store: Store, sql: Sql, facts: str) -> None:
    await add(store, a_thread(), say=[a_post("a", words="secret words"), a_post("b")])
    await sql("UPDATE notices SET facts = :facts WHERE key = 't1/a'", facts=facts)
    assert await claim_notices(store) == []
    assert [item.notice.key for item in await claim_notices(store)] == ["t1/b"]


@pytest.mark.parametrize("known", BROKEN_KNOWN)
async def test_a_thread_that_cannot_be_read_holds_up_no_other(store: Store, sql: Sql, known: str) -> None:
    for name in ("t1", "t2"):
        await watched(store, name)
        await add(store, a_follow_up("1", name))
        await store.transact(lambda tx, name=name: tx.say(name, a_post("a")))  # type: ignore[misc]
    await sql("UPDATE threads SET known = :known WHERE id = 't1'", known=known)
    assert [item.thread.id for item in await claim_watches(store)] == ["t2"]
    assert [item.thread.id for item in await claim_requests(store)] == ["t2"]
    assert await sql("SELECT due_at, claimed_by FROM watches WHERE thread_id = 't1'") == [(None, None)]
    assert await sql("SELECT state, due_at FROM requests WHERE thread_id = 't1'") == [("refused", None)]


async def test_what_there_is_to_say_in_such_a_thread_is_said_and_its_card_is_left_as_it_is(
    store: Store, sql: Sql
) -> None:
    await watched(store, "t1")
    await add(store, a_follow_up("1", "t1"))
    await store.transact(lambda tx: tx.say("t1", a_post("a")))
    await store.transact(lambda tx: tx.say("t1", CARD))
    await sql("UPDATE threads SET known = '{' WHERE id = 't1'")
    await claim_watches(store)
    await claim_requests(store)
    said = [*await deliver_all(store), *await deliver_all(store)]  # the card is set aside in between
    assert [key.rpartition("/")[2] for key in said] == ["a", "damaged", "unreadable"]
    [(state, problem)] = await sql("SELECT state, problem FROM notices WHERE kind = 'card'")
    assert state == "given_up"
    assert "can't be read" in problem


async def test_a_reply_to_such_a_thread_goes_nowhere_and_its_writer_can_be_told(store: Store, sql: Sql) -> None:
    thread = a_thread(ts="1.1")
    await add(store, thread, a_start())
    await sql("UPDATE threads SET known = '{'")
    service = Service(store, project_id="p", recorded=lambda: None)
    assert not await service.steer(Person("UANA", thread.team_id), thread.channel_id, "1.1", "2.1", "more")
    assert await sql("SELECT count(*) FROM requests WHERE kind = 'follow_up'") == [(0,)]


async def test_reading_such_a_thread_quotes_nothing_of_it(store: Store, sql: Sql) -> None:
    await add(store, a_thread(), a_start())
    await sql("""UPDATE threads SET known = '{"round": "secret words"}'""")
    with pytest.raises(StoreError, match="thread t1 can't be read") as caught:
        await store.transact(lambda tx: tx.thread("t1"))
    assert "secret words" not in str(caught.value)


@pytest.mark.parametrize("server", ["sqlite"], indirect=True)
async def test_whoever_wrote_a_request_that_cannot_be_read_is_told(store: Store, sql: Sql) -> None:
    await add(store, a_thread(ts="1.1"), a_start())
    await sql("UPDATE requests SET text = x'ff'")
    assert await claim_requests(store) == []
    [claimed] = await claim_notices(store)
    assert dict(claimed.notice.facts) == {"person": "UANA", "reason": "unreadable"}
