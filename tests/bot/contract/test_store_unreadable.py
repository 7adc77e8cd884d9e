"""An unreadable row is set aside once, with its reason; everything else continues."""

import logging

import pytest
from support.worlds.store_world import (
    CARD,
    Sql,
    a_follow_up,
    a_post,
    a_start,
    a_thread,
    add,
    claim_notices,
    claim_polls,
    claim_requests,
    deliver_all,
    watched,
)

from bot.domain.requests.request import Person, RejectionReason, Reply
from bot.errors import StoreError
from bot.notices.notice import Delivery, UnknownNotice
from bot.notices.requests import RequestRejected, RequestSummary
from bot.service import Service
from bot.store.claims import PATIENCE
from bot.store.store import Store

pytestmark = pytest.mark.either_database

BROKEN_KNOWN = ["{", "[]", "null", '{"round": "many"}', '{"problem": "bad mood"}', '{"job": {"id": 5}}', "\ufffd"]
BROKEN_MESSAGES = [
    "",
    "[1]",
    '{"a": {"b": 1}}',
    '{"kind": 5}',
    '{"kind": "shrug", "a": "\\ud800"}',
    '{"kind": "request_rejected", "reason": "shrug"}',
    "NaN",
]


async def test_an_unreadable_message_is_set_aside(store: Store, sql: Sql, caplog: pytest.LogCaptureFixture) -> None:
    await add(store, a_thread("t1"), say=[a_post("a"), a_post("b")])
    await add(store, a_thread("t2"), say=[CARD])
    await sql(
        "UPDATE notices SET message = :message WHERE key = 't1/a'", message='{"kind": "job_started", "job_id": 5}'
    )
    assert [item.notice.key for item in await claim_notices(store)] == ["t2/card"]
    assert [item.notice.key for item in await claim_notices(store)] == ["t1/b"]
    [(state, problem)] = await sql("SELECT state, problem FROM notices WHERE key = 't1/a'")
    assert state == "given_up"
    assert "cannot be read" in problem
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 1


@pytest.mark.parametrize("delivery", [Delivery.POST, Delivery.EPHEMERAL])
async def test_a_notice_of_an_unreleased_kind_is_posted_as_text(store: Store, sql: Sql, delivery: Delivery) -> None:
    await add(store, a_thread("t1"), say=[a_post("a")])
    message = '{"kind": "shrug", "person_id": "UANA", "moods": ["so", "so"]}'
    await sql(
        "UPDATE notices SET message = :message, delivery = :delivery, created_at = created_at - :patience",
        message=message,
        delivery=delivery,
        patience=PATIENCE,
    )
    [claimed] = await claim_notices(store)
    assert claimed.notice.message == UnknownNotice(
        "shrug", {"person_id": "UANA", "moods": ["so", "so"]}, delivery=delivery
    )
    assert (claimed.notice.delivery, claimed.notice.message.about) == (delivery, "UANA")


@pytest.mark.parametrize("delivery", [Delivery.CARD, Delivery.REACTION])
async def test_an_unreadable_card_or_reaction_blocks_nothing(store: Store, sql: Sql, delivery: Delivery) -> None:
    await add(store, a_thread("t1"), say=[a_post("a"), a_post("b")])
    await sql(
        "UPDATE notices SET message = :message, delivery = :delivery, created_at = created_at - :patience"
        " WHERE key = 't1/a'",
        message='{"kind": "shrug"}',
        delivery=delivery,
        patience=PATIENCE,
    )
    claimed = [*await claim_notices(store), *await claim_notices(store)]
    assert [item.notice.key for item in claimed] == ["t1/b"]


@pytest.mark.parametrize("message", BROKEN_MESSAGES)
async def test_malformed_messages_are_set_aside(store: Store, sql: Sql, message: str) -> None:
    await add(store, a_thread(), say=[a_post("a", repository="secret words"), a_post("b")])
    await sql("UPDATE notices SET message = :message WHERE key = 't1/a'", message=message)
    assert await claim_notices(store) == []
    assert [item.notice.key for item in await claim_notices(store)] == ["t1/b"]


@pytest.mark.parametrize("state", BROKEN_KNOWN)
async def test_an_unreadable_thread_does_not_block_others(store: Store, sql: Sql, state: str) -> None:
    for name in ("t1", "t2"):
        await watched(store, name)
        await add(store, a_follow_up("1", name))
        await store.transact(lambda tx, name=name: tx.notices.add(name, a_post("a")))  # type: ignore[misc]
    await sql("UPDATE threads SET state = :state WHERE id = 't1'", state=state)
    assert [item.thread.id for item in await claim_polls(store)] == ["t2"]
    assert [item.thread.id for item in await claim_requests(store)] == ["t2"]
    assert await sql("SELECT due_at, claimed_by FROM polls WHERE thread_id = 't1'") == [(None, None)]
    assert await sql("SELECT state, due_at FROM requests WHERE thread_id = 't1'") == [("rejected", None)]


async def test_in_an_unreadable_thread_posts_go_out_and_the_card_is_left_alone(store: Store, sql: Sql) -> None:
    await watched(store, "t1")
    await add(store, a_follow_up("1", "t1"))
    await store.transact(lambda tx: tx.notices.add("t1", a_post("a")))
    await store.transact(lambda tx: tx.notices.add("t1", CARD))
    await sql("UPDATE threads SET state = '{' WHERE id = 't1'")
    await claim_polls(store)
    await claim_requests(store)
    said = [*await deliver_all(store), *await deliver_all(store)]  # the card is set aside in between
    assert [key.rpartition("/")[2] for key in said] == ["a", "damaged", "unreadable"]
    [(state, problem)] = await sql("SELECT state, problem FROM notices WHERE delivery = 'card'")
    assert state == "given_up"
    assert "cannot be read" in problem


async def test_a_reply_to_an_unreadable_thread_goes_nowhere_and_is_answered(store: Store, sql: Sql) -> None:
    thread = a_thread(ts="1.1")
    await add(store, thread, a_start())
    await sql("UPDATE threads SET state = '{'")
    service = Service(store, on_commit=lambda: None)
    assert not await service.receive(Reply(Person("UANA", thread.team_id), thread.channel_id, "1.1", "2.1", "more"))
    assert await sql("SELECT count(*) FROM requests WHERE kind = 'follow_up'") == [(0,)]


async def test_errors_about_an_unreadable_thread_quote_nothing(store: Store, sql: Sql) -> None:
    await add(store, a_thread(), a_start())
    await sql("""UPDATE threads SET state = '{"round": "secret words"}'""")
    with pytest.raises(StoreError, match="thread t1 cannot be read") as caught:
        await store.transact(lambda tx: tx.threads.get("t1"))
    assert "secret words" not in str(caught.value)


@pytest.mark.parametrize("server", ["sqlite"], indirect=True)
async def test_the_author_of_an_unreadable_request_is_told(store: Store, sql: Sql) -> None:
    await add(store, a_thread(ts="1.1"), a_start())
    await sql("UPDATE requests SET text = x'ff'")
    assert await claim_requests(store) == []
    [claimed] = await claim_notices(store)
    message = RequestRejected(RequestSummary("t1-start", "UANA", None), RejectionReason.UNREADABLE)
    assert claimed.notice.message == message
