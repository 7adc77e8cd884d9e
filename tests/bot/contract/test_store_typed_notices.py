"""What a database of schema 0003 holds is read as typed messages, and delivered, once it was migrated."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection
from support.fakes.ports import FakeClock
from support.worlds.core_world import CoreWorld
from support.worlds.store_world import a_post, get_thread, upgrade_to

from bot.domain.jobs.job import Job, Problem
from bot.domain.jobs.observe import JobObserved, decide
from bot.domain.jobs.poll_pace import Polling
from bot.domain.notices import keys
from bot.domain.notices.keys import NoticeKey
from bot.domain.notices.messages import (
    ActionAnswer,
    ActionAnswered,
    CardChanged,
    CardNotPosted,
    EarlierWords,
    NoticeMessage,
    PostNotDelivered,
    PromptRequested,
    Reaction,
    ReactionChanged,
    ReplyEdited,
)
from bot.domain.notices.posts import (
    AccessDenied,
    Delivery,
    JobActiveAgain,
    JobArchived,
    JobDisappeared,
    JobFailed,
    JobFinished,
    JobStarted,
    OutageEnded,
    OutageStarted,
    PullRequestFound,
    RecordDamaged,
    ReplyNotFullySent,
    RequestRejected,
    RequestSummary,
    RequestUncertain,
    UnknownNotice,
)
from bot.domain.requests.request import RejectionReason, RequestKind
from bot.domain.threads.thread import ThreadState, UnexplainedRejection
from bot.errors import UnreadableRow
from bot.ports.ports import Store
from bot.store.database.engine import engine_for
from bot.store.migrations.messages_of_0004 import message_text
from bot.store.schema.migration import migrate
from bot.store.schema.tables import metadata
from bot.store.store import open_store

pytestmark = pytest.mark.either_database

LINK = "https://git.example/pull/7"
WHOSE = {"person": "UBEN", "request": "r1", "kind": "follow_up", "text": "More \x02@U7\x03"}
FOLLOW_UP = RequestSummary("r1", "UBEN", RequestKind.FOLLOW_UP, "More \x02@U7\x03")
UNKNOWN_THEN = {
    RejectionReason.ACCEPTED_WHILE_ARCHIVED,
    RejectionReason.NOT_PERMITTED,
    RejectionReason.NOTHING_TO_STOP,
    RejectionReason.STOPPED,
    RejectionReason.REPLACED,
}
"""Reasons that no row of the old form holds under these words."""
WAITING = RequestSummary("", "UBEN", RequestKind.FOLLOW_UP, "More \x02@U7\x03")
"""Of a request that waits for the end of an outage, its id was not kept."""

OLD_NOTICES: list[tuple[str, str, dict[str, str], NoticeMessage]] = [
    ("card", "card", {}, CardChanged()),
    ("mark", "mark", {"message_ts": "5.1", "mark": "eyes"}, ReactionChanged("5.1", Reaction.RECORDED)),
    ("mark", "mark", {"message_ts": "5.2", "mark": ""}, ReactionChanged("5.2", None)),
    (
        "post",
        "started",
        {"job": "j1", "repository": "a/b", "ref": "main", "model": "m"},
        JobStarted("j1", "a/b", "main", "m"),
    ),
    ("post", "started", {"job": "j1"}, JobStarted("j1")),
    ("post", "active_again", {}, JobActiveAgain()),
    ("post", "finished", {"link": ""}, JobFinished()),
    ("post", "finished", {"link": LINK, "new": "yes"}, JobFinished(LINK, new=True)),
    (
        "post",
        "finished",
        {"link": LINK, "new": "yes", "changed": "yes", "again": "yes"},
        JobFinished(LINK, new=True, changed=True, again=True),
    ),
    ("post", "failed", {}, JobFailed()),
    ("post", "archived", {}, JobArchived()),
    ("post", "link", {"link": LINK, "new": "yes", "changed": "yes"}, PullRequestFound(LINK, changed=True)),
    ("post", "gone", {}, JobDisappeared()),
    ("post", "damaged", {}, RecordDamaged()),
    (
        "post",
        "out_of_reach",
        {"reason": "asks to wait", "trouble": "rate_limited", "words": "slow", "until": "1700000040", "request": ""},
        OutageStarted(Problem.RATE_LIMITED, "asks to wait", "slow", 1_700_000_040),
    ),
    (
        "post",
        "out_of_reach",
        {"reason": "is away", "trouble": "out_of_reach", "words": "", **WHOSE, "request": "yes"},
        OutageStarted(Problem.OUT_OF_REACH, "is away", waiting=WAITING),
    ),
    (
        "post",
        "out_of_reach",
        {"reason": "is away", "request": "yes"},
        OutageStarted(Problem.OUT_OF_REACH, "is away", waiting=RequestSummary("", "", None)),
    ),
    ("post", "not_allowed", {"status": "403", "request": ""}, AccessDenied(403)),
    ("post", "not_allowed", {"status": "401", **WHOSE, "request": "yes"}, AccessDenied(401, WAITING)),
    ("post", "not_allowed", {"status": "401"}, AccessDenied(401, RequestSummary("", "", None))),
    ("post", "back", {"trouble": "busy"}, OutageEnded(Problem.BUSY)),
    ("post", "back", {}, OutageEnded()),
    *(
        ("post", "refused", {**WHOSE, "reason": old, "words": "no"}, RequestRejected(FOLLOW_UP, new, "no"))
        for old, new in {
            **{reason.value: reason for reason in RejectionReason if reason not in UNKNOWN_THEN},
            "taken_archived": RejectionReason.ACCEPTED_WHILE_ARCHIVED,
            "of long ago": RejectionReason.OTHER,
        }.items()
    ),
    (
        "post",
        "refused",
        {"person": "UBEN", "reason": "unreadable"},
        RequestRejected(RequestSummary("", "UBEN", None), RejectionReason.UNREADABLE),
    ),
    ("post", "unsure", {**WHOSE, "ended": ""}, RequestUncertain(FOLLOW_UP, job_ended=False)),
    (
        "post",
        "unsure",
        {"person": "UANA", "request": "r0", "kind": "start"},
        RequestUncertain(RequestSummary("r0", "UANA", RequestKind.START)),
    ),
    (
        "post",
        "not_carried",
        {"person": "UBEN", "sent": "yes", "count": "3", "files": "a.png\nb.png", "forwarded": "yes"},
        ReplyNotFullySent("UBEN", True, 3, ("a.png", "b.png"), True),
    ),
    (
        "post",
        "not_carried",
        {"person": "UBEN", "sent": "", "count": "0", "files": "", "forwarded": ""},
        ReplyNotFullySent("UBEN", words_sent=False),
    ),
    (
        "tell",
        "cannot_post",
        {"person": "UANA", "reason": "missing_scope", "scopes": "groups:history, chat:write", "in_doubt": "yes"},
        CardNotPosted("UANA", "missing_scope", ("groups:history", "chat:write"), may_be_posted=True),
    ),
    ("tell", "cannot_post", {"person": "UANA", "reason": "is_archived"}, CardNotPosted("UANA", "is_archived")),
    *(
        (
            "tell",
            "new_words",
            {"person": "UBEN", "request": "r1", "words": "New", "state": old},
            ReplyEdited("UBEN", "r1", "New", new),
        )
        for old, new in (
            ("taken", EarlierWords.ACCEPTED),
            ("refused", EarlierWords.REJECTED),
            ("unsure", EarlierWords.UNCERTAIN),
        )
    ),
    ("tell", "whole_prompt", {"person": "UBEN", "text": "Do\nit"}, PromptRequested("UBEN", "Do\nit")),
    *(
        ("tell", "answer", {"person": "UEVA", "answer": old}, ActionAnswered("UEVA", new))
        for old, new in {
            "sent_again": ActionAnswer.SENT_AGAIN,
            "already_taken": ActionAnswer.ALREADY_ACCEPTED,
            "not_yours": ActionAnswer.NOT_YOURS,
            "external": ActionAnswer.OTHER_WORKSPACE,
            "no_team": ActionAnswer.UNKNOWN_WORKSPACE,
            "withdrawn": ActionAnswer.WITHDRAWN,
            "new_words": ActionAnswer.NEW_WORDS_SENT,
            "nothing_new": ActionAnswer.NOTHING_NEW,
            "see_thread": ActionAnswer.SEE_THREAD,
        }.items()
    ),
    (
        "tell",
        "finished",
        {"person": "UANA", "link": LINK, "new": "yes", "in_doubt": "yes", "scopes": "chat:write"},
        PostNotDelivered("UANA", JobFinished(LINK, new=True), may_be_posted=True),
    ),
    (
        "tell",
        "refused",
        {**WHOSE, "person": "UANA", "reason": "api", "words": ""},
        PostNotDelivered(
            "UANA",
            RequestRejected(
                RequestSummary("r1", "UANA", RequestKind.FOLLOW_UP, "More \x02@U7\x03"), RejectionReason.API
            ),
            may_be_posted=False,
        ),
    ),
    (
        "tell",
        "answer",
        {"person": "UEVA", "answer": "maybe"},
        UnknownNotice("", {"person_id": "UEVA", "answer": "maybe"}, Delivery.EPHEMERAL),
    ),
    ("post", "shrug", {"mood": "so so"}, UnknownNotice("shrug", {"person_id": "", "mood": "so so"})),
]
"""How it reached people, what it said, its facts; and the message that this is by now."""

DAMAGED = [
    ("post", "finished", ""),
    ("post", "finished", "broken"),
    ("post", "finished", "[1]"),
    ("post", "finished", "NaN"),
    ("post", "finished", '{"link": {"b": 1}}'),
    ("post", "finished", '{"link": "\\ud800"}'),
    ("post", "finished", "[" * 5_000),
    ("mark", "mark", "{}"),
    ("mark", "mark", '{"message_ts": "5.1", "mark": "shrug"}'),
    ("mark", "shrug", "{}"),
    ("card", "shrug", "{}"),
]


@pytest.fixture
async def old(empty_database: str) -> AsyncIterator[AsyncConnection]:
    """A connection to a database of schema 0003."""
    engine = engine_for(empty_database)
    async with engine.begin() as connection:
        await connection.run_sync(upgrade_to, "0003")
    async with engine.connect() as connection:
        yield connection
    await engine.dispose()


async def add_thread(connection: AsyncConnection, name: str, known: str = "{}") -> None:
    """A thread as it stood in a row of 0003."""
    await connection.execute(
        text("INSERT INTO threads VALUES (:id, 'T1', 'C1', :ts, 'UANA', 'Do it', 'docs', 1, 1, NULL, :known, 0)"),
        {"id": name, "ts": f"1.{name}", "known": known},
    )
    await connection.execute(text("INSERT INTO watches (thread_id) VALUES (:id)"), {"id": name})


async def add_notice(connection: AsyncConnection, thread: str, kind: str, what: str, facts: str) -> None:
    """A notice as it stood in a row of 0003, due."""
    values = {"thread": thread, "kind": kind, "what": what, "facts": facts, "key": f"{thread}/n"}
    await connection.execute(
        text(
            "INSERT INTO notices (key, thread_id, kind, what, facts, created_at, state, revision, attempts, uncertain,"
            " plain, problem, due_at)"
            " VALUES (:key, :thread, :kind, :what, :facts, 1, 'waiting', 0, 0, FALSE, FALSE, '', 1)"
        ),
        values,
    )


async def opened(connection: AsyncConnection, url: str, clock: FakeClock) -> Store:
    """The store of the database, migrated."""
    await connection.commit()
    await migrate(url)
    return await open_store(url, clock=clock)


async def test_every_kind_of_notice_is_read_typed_and_delivered_and_a_damaged_one_is_set_aside(
    old: AsyncConnection, empty_database: str, clock: FakeClock
) -> None:
    rows = [(kind, what, json.dumps(facts, ensure_ascii=False)) for kind, what, facts, _ in OLD_NOTICES] + DAMAGED
    for number, row in enumerate(rows):
        await add_thread(old, f"t{number:03}")
        await add_notice(old, f"t{number:03}", *row)
    store, world = await opened(old, empty_database, clock), CoreWorld()
    world.store, world.clock = store, clock
    await world.assemble().settle()
    expected = [message for *_, message in OLD_NOTICES]
    personal = [message for message in expected if message.delivery is Delivery.EPHEMERAL]
    posted = {posted.key: posted.message for posted in world.chat.messages}
    assert posted == {
        f"t{number:03}/n": message for number, message in enumerate(expected) if message.delivery is Delivery.POST
    }
    assert sorted(world.chat.told, key=repr) == sorted(personal, key=repr)
    assert world.chat.reactions == {"5.1": Reaction.RECORDED}
    assert list(world.chat.cards) == ["t000"]
    result = await old.execute(text("SELECT thread_id, problem FROM notices WHERE state = 'given_up' ORDER BY id"))
    given_up = [tuple(row) for row in result]
    assert [thread for thread, _ in given_up] == [f"t{n:03}" for n in range(len(OLD_NOTICES), len(rows))]
    assert all("cannot be read" in problem for _, problem in given_up)
    await store.close()


def test_a_damaged_notice_keeps_all_that_it_held() -> None:
    assert message_text("post", "finished", "broken") == "finished broken"


@pytest.mark.parametrize("until", ["soon", "-1", "1e9", "9" * 12, "\uff11\uff12", ""])
def test_no_time_is_made_of_anything_but_a_number_of_ours(until: str) -> None:
    facts = {"trouble": "rate_limited", "request": "", "until": until}
    assert json.loads(message_text("post", "out_of_reach", json.dumps(facts)))["until"] is None


KNOWN: dict[str, Any] = {
    "job": {"id": "j1", "status": "completed", "pr_link": LINK},
    "round": 2,
    "said": ["started", "r2/completed"],
    "links": [LINK],
    "trouble": "refused",
    "trouble_words": "no",
    "trouble_until": 1_700_000_040,
    "misses": 1,
    "out_since": 12.5,
    "out_said": True,
    "outages": 3,
    "changed_at": 3.25,
    "watch_until": 4.5,
    "finished": True,
    "unexplained": [
        {"key": "r1/refused/1", "what": "refused", "facts": {**WHOSE, "reason": "gone", "words": "x"}, "kind": "post"}
    ],
}


async def test_what_was_known_of_a_thread_is_its_state_and_nothing_is_told_again(
    old: AsyncConnection, empty_database: str, clock: FakeClock
) -> None:
    await add_thread(old, "t1", json.dumps(KNOWN))
    await add_thread(old, "t2", json.dumps(KNOWN | {"trouble": "unsure", "unexplained": []}))
    await add_thread(old, "t3", "{}")
    store = await opened(old, empty_database, clock)
    unexplained = UnexplainedRejection(NoticeKey("r1/refused/1"), RequestRejected(FOLLOW_UP, RejectionReason.GONE, "x"))
    state = ThreadState(
        job=Job("j1", "completed", pr_link=LINK),
        round=2,
        announced=frozenset({keys.JOB_STARTED, keys.job_finished(2)}),
        links=(LINK,),
        problem=Problem.REJECTED,
        problem_text="no",
        problem_until=1_700_000_040,
        not_found_count=1,
        outage_since=12.5,
        outage_announced=True,
        outage_count=3,
        changed_at=3.25,
        poll_until=4.5,
        finished_before=True,
        unexplained=(unexplained,),
    )
    assert (await get_thread(store, "t1")).state == state
    second = (await get_thread(store, "t2")).state
    assert second.problem is Problem.UNCERTAIN
    assert (await get_thread(store, "t3")).state == ThreadState()
    again = decide(second, JobObserved(Job("j1", "completed", pr_link=LINK)), 5.0, Polling())
    assert [notice.key for notice in again.notices] == ["back/3"]
    await store.close()


@pytest.mark.parametrize(
    "known",
    [
        "{",
        "[]",
        '{"trouble": "bad mood"}',
        '{"unexplained": [{"key": "k", "what": "started", "facts": {}}]}',
        '{"unexplained": [{"what": "refused", "facts": {"reason": "api"}}]}',
    ],
)
async def test_a_state_that_cannot_be_read_stays_so(
    old: AsyncConnection, empty_database: str, clock: FakeClock, known: str
) -> None:
    await add_thread(old, "t1", known)
    store = await opened(old, empty_database, clock)
    with pytest.raises(UnreadableRow):
        await get_thread(store, "t1")
    await store.close()


async def test_more_rows_than_one_batch_are_all_kept_with_their_ids_and_none_is_used_again(
    old: AsyncConnection, empty_database: str, clock: FakeClock
) -> None:
    await add_thread(old, "t1")
    for number in range(2_345):
        await add_notice(old, "t1", "post", "failed", "{}")
        await old.execute(text("UPDATE notices SET key = :key WHERE key = 't1/n'"), {"key": f"t1/{number}"})
    await old.execute(text("DELETE FROM notices WHERE key IN ('t1/7', 't1/1000', 't1/2344')"))
    before = [tuple(row) for row in await old.execute(text("SELECT id, key FROM notices ORDER BY id"))]
    store = await opened(old, empty_database, clock)
    await store.transact(lambda tx: tx.notices.add("t1", a_post("new")))
    after = [tuple(row) for row in await old.execute(text("SELECT id, key FROM notices ORDER BY id"))]
    assert after[:-1] == before
    assert after[-1] == (2_346, "t1/new")
    assert set(metadata.tables["notices"].c.keys()) >= {"message", "delivery", "without_blocks"}
    await store.close()
