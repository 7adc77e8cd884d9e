"""The tables. A change here needs a migration; a test compares the two.

Polls, requests and notices share a rule: `due_at` is when the row may be claimed next (NULL: nothing is left to do),
and it can be claimed unless another claim is in force (`claimed_until`). Times are seconds since the epoch.
"""

from collections.abc import Iterable
from enum import StrEnum

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    Double,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    false,
    literal_column,
    text,
)

from bot.domain.requests.request import RequestKind, RequestState, WayIn
from bot.domain.threads.thread import ThreadOrigin
from bot.notices.notice import Delivery
from bot.store.schema.column_types import CleanText, KeyText, metadata, time_check
from bot.store.schema.gap_tables import gaps
from bot.store.schema.people_tables import homes

__all__ = ("NoticeState", "early_replies", "message_versions", "metadata", "notices", "polls", "requests", "threads")


class NoticeState(StrEnum):
    """A notice's state: the first two are open."""

    WAITING = "waiting"
    SENDING = "sending"
    DONE = "done"
    GIVEN_UP = "given_up"


TO_BE_PREPARED: list[ColumnElement[str]] = [
    literal_column(f"'{state}'") for state in (RequestState.RECEIVED, RequestState.PREPARING)
]
TO_BE_SENT: list[ColumnElement[str]] = [
    literal_column(f"'{state}'") for state in (RequestState.WAITING, RequestState.SENDING)
]
"""Returns a literal, not a parameter, so that a database recognizes that a partial index applies."""
_REQUEST_OPEN = (RequestState.RECEIVED, RequestState.PREPARING, RequestState.WAITING, RequestState.SENDING)


def _listed(words: Iterable[StrEnum]) -> str:
    return ", ".join(f"'{word}'" for word in words)


def _one_of(column: str, words: type[StrEnum]) -> CheckConstraint:
    return CheckConstraint(f"{column} IN ({_listed(words)})", name=column)


def _queue_rules(open_states: Iterable[StrEnum], claimed_states: Iterable[StrEnum]) -> tuple[CheckConstraint, ...]:
    return (
        CheckConstraint(f"(due_at IS NOT NULL) = (state IN ({_listed(open_states)}))", name="open_is_due"),
        CheckConstraint(
            f"(claimed_by IS NOT NULL) = (state IN ({_listed(claimed_states)}))", name="sending_is_claimed"
        ),
        CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name="claim"),
        CheckConstraint("attempts >= 0", name="attempts"),
        time_check("due_at"),
        time_check("claimed_until"),
    )


threads = Table(
    "threads",
    metadata,
    Column("id", KeyText, primary_key=True),
    Column("team_id", CleanText, nullable=False),
    Column("channel_id", CleanText, nullable=False),
    Column("ts", CleanText),
    Column("card_ts", CleanText),
    Column("number", Integer, nullable=False),
    Column("origin", Text, nullable=False),
    Column("requester_id", CleanText, nullable=False),
    Column("prompt", CleanText, nullable=False),
    Column("project", CleanText, nullable=False),
    Column("options", CleanText, nullable=False),
    Column("root_ts", CleanText, nullable=False, server_default=text("''")),
    Column("follows", CleanText, nullable=False, server_default=text("''")),
    Column("created_at", Double, nullable=False),
    Column("updated_at", Double, nullable=False),
    Column("job_id", CleanText),
    Column("state", CleanText, nullable=False),
    Column("revision", Integer, nullable=False),
    UniqueConstraint("channel_id", "ts", "number"),
    UniqueConstraint("channel_id", "card_ts", name="uq_threads_card"),
    CheckConstraint("revision >= 0", name="revision"),
    CheckConstraint("number >= 0", name="number"),
    _one_of("origin", ThreadOrigin),
    time_check("created_at"),
    time_check("updated_at"),
)
"""`options` is the JSON of a ThreadOptions, `state` that of a ThreadState; `job_id` repeats the id of its job, which
follow-ups wait for; `updated_at` is when `state` last changed; `follows` is the thread of the job that it comes after
or replaces (empty: none), `root_ts` the first message of the Slack thread with the request (empty: none)."""

polls = Table(
    "polls",
    metadata,
    Column("thread_id", KeyText, ForeignKey("threads.id", ondelete="CASCADE"), primary_key=True),
    Column("due_at", Double),
    Column("claimed_by", CleanText),
    Column("claimed_until", Double),
    CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name="claim"),
    CheckConstraint("claimed_by IS NULL OR due_at IS NOT NULL", name="claimed_is_due"),
    time_check("due_at"),
    time_check("claimed_until"),
)

requests = Table(
    "requests",
    metadata,
    Column("id", KeyText, primary_key=True),
    Column("thread_id", KeyText, ForeignKey("threads.id", ondelete="CASCADE"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("source_key", KeyText, nullable=False, unique=True),
    Column("person_id", CleanText, nullable=False),
    Column("text", CleanText, nullable=False),
    Column("written_at", CleanText().with_variant(CleanText(collation="C"), "postgresql"), nullable=False),
    Column("recorded_at", Double, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("first_tried_at", Double),
    Column("problem", CleanText, nullable=False),
    Column("edited_at", CleanText, nullable=False),
    Column("latest_text", CleanText),
    Column("uncertain", Boolean, nullable=False),
    Column("due_at", Double),
    Column("claimed_by", CleanText),
    Column("claimed_until", Double),
    Column("requester", CleanText),
    Column("team_id", CleanText, nullable=False),
    Column("attachments", CleanText, nullable=False),
    Column("context", CleanText),
    Column("merged_into", CleanText, nullable=False),
    Column("fetched", CleanText),
    Column("way_in", Text, nullable=False, server_default=WayIn.REPLY),
    _one_of("kind", RequestKind),
    _one_of("state", RequestState),
    time_check("recorded_at"),
    time_check("first_tried_at"),
    *_queue_rules(_REQUEST_OPEN, (RequestState.PREPARING, RequestState.SENDING)),
)
"""JSON columns: `requester` (a Requester, once known); `context` (a RequestContext, once prepared); `attachments`
(Attachments; empty: none); `fetched` (FetchedParts, while others are still missing)."""

request_files = Table(
    "request_files",
    metadata,
    Column("request_id", KeyText, ForeignKey("requests.id", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("file", CleanText, nullable=False),
    Column("outcome", CleanText),
    Column("failing_since", Double),
    Column("attempts", Integer, nullable=False),
    Column("due_at", Double),
    Column("claimed_by", CleanText),
    Column("claimed_until", Double),
    CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name="claim"),
    CheckConstraint("claimed_by IS NULL OR due_at IS NOT NULL", name="claimed_is_due"),
    CheckConstraint("attempts >= 0", name="attempts"),
    time_check("failing_since"),
    time_check("due_at"),
    time_check("claimed_until"),
)
"""The files of a request that waits until each is uploaded or given up; then they are deleted. `file` is the JSON of a
SlackFile, `outcome` that of a FileOutcome; `failing_since` is when Slack first failed to provide it."""

notices = Table(
    "notices",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("key", KeyText, nullable=False, unique=True),
    Column("thread_id", KeyText, ForeignKey("threads.id", ondelete="CASCADE"), nullable=False),
    Column("delivery", Text, nullable=False),
    Column("message", CleanText, nullable=False),
    Column("person_id", CleanText),
    Column("created_at", Double, nullable=False),
    Column("state", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("uncertain", Boolean, nullable=False),
    Column("without_blocks", Boolean, nullable=False),
    Column("reactions_shown", Text),
    Column("reaction_added", Boolean, nullable=False, server_default=false()),
    Column("only_progress", Boolean, nullable=False, server_default=false()),
    Column("posted_ts", CleanText),
    Column("problem", CleanText, nullable=False),
    Column("due_at", Double),
    Column("claimed_by", CleanText),
    Column("claimed_until", Double),
    _one_of("delivery", Delivery),
    _one_of("state", NoticeState),
    CheckConstraint("revision >= 0", name="revision"),
    time_check("created_at"),
    *_queue_rules((NoticeState.WAITING, NoticeState.SENDING), (NoticeState.SENDING,)),
    sqlite_autoincrement=True,
)
"""`message` is the JSON of a NoticeMessage; `delivery` repeats how it is delivered, and `person_id` whom it is for or
about. Ids are never reused, so their order is the order of recording. `reactions_shown` are the names of reactions that
a reply may have, separated by spaces (NULL: any); `reaction_added`: the newest is there. `only_progress`: the card
shows no other change."""

early_replies = Table(
    "early_replies",
    metadata,
    Column("channel_id", KeyText, primary_key=True),
    Column("message_ts", KeyText, primary_key=True),
    Column("thread_ts", CleanText, nullable=False),
    Column("person_id", CleanText, nullable=False),
    Column("team_id", CleanText, nullable=False),
    Column("text", CleanText, nullable=False),
    Column("attachments", CleanText, nullable=False),
    Column("edited_at", CleanText, nullable=False),
    Column("withdrawn", Boolean, nullable=False),
    Column("mentions_us", Boolean, nullable=False),
    Column("word", Text, nullable=False),
)
"""Replies whose thread is unknown while a card is being posted to their channel. `attachments` is JSON (empty: none),
`word` a ThreadWord (empty: none).
"""

message_versions = Table(
    "message_versions",
    metadata,
    Column("channel_id", KeyText, primary_key=True),
    Column("message_ts", KeyText, primary_key=True),
    Column("person_id", CleanText, nullable=False),
    Column("edited_at", CleanText, nullable=False),
    Column("noted_at", Double, nullable=False),
    Column("answered", CleanText),
    time_check("noted_at"),
)
"""The versions of messages for Pagehand, kept for a while: the newest one seen (`edited_at` of a Reply), and the one
whose writer got a private answer that is not a notice.
"""

Index(None, threads.c.updated_at)
Index(None, threads.c.requester_id, threads.c.created_at)
Index(None, threads.c.follows, postgresql_where=threads.c.follows != "", sqlite_where=threads.c.follows != "")
Index(None, requests.c.person_id, requests.c.recorded_at)
Index(None, early_replies.c.person_id)
Index(None, message_versions.c.person_id)
Index(None, message_versions.c.noted_at)
Index(
    None,
    notices.c.person_id,
    notices.c.id,
    postgresql_where=notices.c.person_id.is_not(None),
    sqlite_where=notices.c.person_id.is_not(None),
)
_HELD = requests.c.state == literal_column(f"'{RequestState.AWAITING_PERSON}'")
Index("ix_requests_held", requests.c.recorded_at, postgresql_where=_HELD, sqlite_where=_HELD)
for _queue in (polls, requests, request_files, notices, homes, gaps):
    Index(
        None, _queue.c.due_at, postgresql_where=_queue.c.due_at.is_not(None), sqlite_where=_queue.c.due_at.is_not(None)
    )
for _queue in (requests, notices):
    Index(None, _queue.c.thread_id, _queue.c.due_at)
_OPEN_NOTICE = notices.c.due_at.is_not(None)
Index(None, notices.c.delivery, notices.c.due_at, postgresql_where=_OPEN_NOTICE, sqlite_where=_OPEN_NOTICE)
for _name, _states in (("to_be_prepared", TO_BE_PREPARED), ("to_be_sent", TO_BE_SENT)):
    Index(
        f"ix_requests_{_name}",
        requests.c.person_id,
        requests.c.thread_id,
        requests.c.due_at,
        postgresql_where=requests.c.state.in_(_states),
        sqlite_where=requests.c.state.in_(_states),
    )
Index(
    "ix_requests_in_order",
    requests.c.thread_id,
    requests.c.kind,
    requests.c.written_at,
    requests.c.recorded_at,
    requests.c.id,
    postgresql_where=requests.c.due_at.is_not(None),
    sqlite_where=requests.c.due_at.is_not(None),
)
Index(
    "ix_requests_under_way",
    requests.c.thread_id,
    requests.c.claimed_until,
    postgresql_where=requests.c.claimed_until.is_not(None),
    sqlite_where=requests.c.claimed_until.is_not(None),
)

slack_calls = Table(
    "slack_calls",
    metadata,
    Column("method", Text, primary_key=True),
    Column("channel_id", KeyText, primary_key=True),
    Column("tat", Double, nullable=False),
    Column("failing", Boolean, nullable=False, server_default=false()),
    Column("calls", Text, nullable=False, server_default="[]"),
    time_check("tat"),
)
"""A row for each of Slack's methods, and for each channel that one was recently called in (empty: the whole workspace).
`tat`: when the next call may be made; `calls`: in JSON, when each call made ceases to count; `failing`: the last post
in the channel failed."""

Index(None, slack_calls.c.tat)

channel_ids = Table(
    "channel_ids",
    metadata,
    Column("channel_id", KeyText, primary_key=True),
    Column("known_as", CleanText, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("recorded_at", Double, nullable=False),
    time_check("changed_at"),
    time_check("recorded_at"),
)
"""The ids of channels whose id Slack changed; `known_as` is the first one, which rows use."""

last_times = Table(
    "last_times",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("at", Double, nullable=False),
    time_check("at"),
)
"""A row for each LastTime that has happened."""

# Databases also have a table `faults`, which only 1.0.0 uses. The first version that needs no upgrade from it drops it.

Index(None, channel_ids.c.known_as, channel_ids.c.changed_at)
Index(None, channel_ids.c.recorded_at)
