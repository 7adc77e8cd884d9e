"""The tables. A change here needs a migration; a test compares the two.

Polls, requests and notices share a rule: `due_at` is when the row may be claimed next (NULL: nothing is left to do),
and it can be claimed unless another claim is in force (`claimed_until`). Times are seconds since the epoch.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    Double,
    ForeignKey,
    FromClause,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    false,
    literal_column,
    text,
)
from sqlalchemy.schema import SchemaItem

from bot.domain.requests.request import RequestState, WayIn
from bot.domain.threads.thread import ThreadOrigin
from bot.notices.notice import Delivery
from bot.queue.columns import CleanText, KeyText, named_metadata

_LAST_TIME = 100_000_000_000
"""The latest valid time (in the year 5138); NaN and infinity are rejected, too."""

metadata = named_metadata()


def _time(name: str, *, nullable: bool = False) -> tuple[SchemaItem, ...]:
    return Column(name, Double, nullable=nullable), CheckConstraint(f"{name} BETWEEN 0 AND {_LAST_TIME}", name=name)


def _count(name: str) -> tuple[SchemaItem, ...]:
    return Column(name, Integer, nullable=False, default=0), CheckConstraint(f"{name} >= 0", name=name)


def _texts(*names: str) -> list[Column[Any]]:
    return [Column(name, CleanText, nullable=False) for name in names]


def _queue(*rules: CheckConstraint) -> tuple[SchemaItem, ...]:
    return (
        *_time("due_at", nullable=True),
        Column("claimed_by", CleanText),
        *_time("claimed_until", nullable=True),
        CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name="claim"),
        *rules,
    )


def _claimed_is_due() -> CheckConstraint:
    return CheckConstraint("claimed_by IS NULL OR due_at IS NOT NULL", name="claimed_is_due")


def _is_open(*states: StrEnum) -> CheckConstraint:
    return CheckConstraint(f"(due_at IS NOT NULL) = (state IN ({_listed(states)}))", name="open_is_due")


def _is_claimed(*states: StrEnum) -> CheckConstraint:
    return CheckConstraint(f"(claimed_by IS NOT NULL) = (state IN ({_listed(states)}))", name="sending_is_claimed")


def _one_of(column: str, words: type[StrEnum]) -> CheckConstraint:
    return CheckConstraint(f"{column} IN ({_listed(words)})", name=column)


def _listed(words: Iterable[StrEnum]) -> str:
    return ", ".join(f"'{word}'" for word in words)


class NoticeState(StrEnum):
    """A notice's state: the first two are open."""

    WAITING = "waiting"
    SENDING = "sending"
    DONE = "done"
    GIVEN_UP = "given_up"


threads = Table(
    "threads",
    metadata,
    Column("id", KeyText, primary_key=True),
    *_texts("team_id", "channel_id"),
    Column("ts", CleanText),
    Column("card_ts", CleanText),
    *_count("number"),
    Column("origin", Text, nullable=False),
    *_texts("requester_id", "prompt", "project", "options"),
    Column("root_ts", CleanText, nullable=False, server_default=text("''")),
    Column("follows", CleanText, nullable=False, server_default=text("''")),
    *_time("created_at"),
    *_time("updated_at"),
    Column("job_id", CleanText),
    Column("state", CleanText, nullable=False),
    *_count("revision"),
    UniqueConstraint("channel_id", "ts", "number"),
    UniqueConstraint("channel_id", "card_ts", name="uq_threads_card"),
    _one_of("origin", ThreadOrigin),
)
"""`options` is the JSON of a ThreadOptions, `state` that of a ThreadState; `job_id` repeats the id of its job, which
follow-ups wait for; `updated_at` is when `state` last changed; `follows` is the thread of the job that it comes after
or replaces (empty: none), `root_ts` the first message of the Slack thread with the request (empty: none)."""

polls = Table(
    "polls",
    metadata,
    Column("thread_id", KeyText, ForeignKey("threads.id", ondelete="CASCADE"), primary_key=True),
    Column("seen", Text),
    *_queue(_claimed_is_due()),
)
"""`seen` is what the job poller remembers of the last poll."""

requests = Table(
    "requests",
    metadata,
    Column("id", KeyText, primary_key=True),
    Column("thread_id", KeyText, ForeignKey("threads.id", ondelete="CASCADE"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("source_key", KeyText, nullable=False, unique=True),
    *_texts("person_id", "text"),
    Column("written_at", CleanText().with_variant(CleanText(collation="C"), "postgresql"), nullable=False),
    *_time("recorded_at"),
    Column("state", Text, nullable=False),
    *_count("attempts"),
    *_time("first_tried_at", nullable=True),
    *_texts("problem", "edited_at"),
    Column("latest_text", CleanText),
    Column("uncertain", Boolean, nullable=False),
    *_queue(
        _is_open(RequestState.RECEIVED, RequestState.PREPARING, RequestState.WAITING, RequestState.SENDING),
        _is_claimed(RequestState.PREPARING, RequestState.SENDING),
    ),
    Column("requester", CleanText),
    *_texts("team_id", "attachments"),
    Column("context", CleanText),
    Column("merged_into", CleanText, nullable=False),
    Column("fetched", CleanText),
    Column("way_in", Text, nullable=False, server_default=WayIn.REPLY),
    Column("mode", Text),
    _one_of("state", RequestState),
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
    *_time("failing_since", nullable=True),
    *_count("attempts"),
    *_queue(_claimed_is_due()),
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
    *_time("created_at"),
    Column("state", Text, nullable=False, default=NoticeState.WAITING),
    *_count("revision"),
    *_count("attempts"),
    Column("uncertain", Boolean, nullable=False, default=False),
    Column("without_blocks", Boolean, nullable=False, default=False),
    Column("reactions_shown", Text, default=""),
    Column("reaction_added", Boolean, nullable=False, server_default=false()),
    Column("only_progress", Boolean, nullable=False, server_default=false()),
    Column("posted_ts", CleanText),
    Column("problem", CleanText, nullable=False, default=""),
    *_queue(_is_open(NoticeState.WAITING, NoticeState.SENDING), _is_claimed(NoticeState.SENDING)),
    _one_of("delivery", Delivery),
    _one_of("state", NoticeState),
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
    *_texts("thread_ts", "person_id", "team_id", "text", "attachments", "edited_at"),
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
    *_texts("person_id", "edited_at"),
    *_time("noted_at"),
    Column("answered", CleanText),
)
"""The versions of messages for Pagehand, kept for a while: the newest one seen (`edited_at` of a Reply), and the one
whose writer got a private answer that is not a notice.
"""

slack_calls = Table(
    "slack_calls",
    metadata,
    Column("method", Text, primary_key=True),
    Column("channel_id", KeyText, primary_key=True),
    *_time("tat"),
    Column("failing", Boolean, nullable=False, server_default=false()),
    Column("calls", Text, nullable=False, server_default="[]"),
)
"""A row for each of Slack's methods, and for each channel that one was recently called in (empty: the whole workspace).
`tat`: when the next call may be made; `calls`: in JSON, when each call made ceases to count; `failing`: the last post
in the channel failed."""


channel_ids = Table(
    "channel_ids",
    metadata,
    Column("channel_id", KeyText, primary_key=True),
    Column("known_as", CleanText, nullable=False),
    *_time("changed_at"),
    *_time("recorded_at"),
)
"""The ids of channels whose id Slack changed; `known_as` is the first one, which rows use."""

last_times = Table("last_times", metadata, Column("kind", Text, primary_key=True), *_time("at"))
"""A row for each LastTime that has happened."""

audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    *_time("at"),
    Column("action", Text, nullable=False),
    *_texts("person_id", "team_id", "channel_id", "thread_id", "job_id", "project", "way_in", "reason"),
    sqlite_autoincrement=True,
)
"""Who did what, and when (AuditEntry); never what they wrote."""

counted_requests = Table(
    "counted_requests",
    metadata,
    Column("request_id", KeyText, primary_key=True),
    Column("person_id", CleanText, nullable=False),
    *_time("at"),
)
"""The requests that count towards a person's hourly limit, each once, from when it was allowed."""

drafts = Table(
    "drafts",
    metadata,
    Column("person_id", KeyText, primary_key=True),
    Column("place", KeyText, primary_key=True),
    Column("text", CleanText, nullable=False),
    *_time("updated_at"),
)
"""Text typed into a modal that was not submitted; `place` is where the modal was opened."""

preferences = Table(
    "preferences",
    metadata,
    Column("person_id", KeyText, primary_key=True),
    Column("project", CleanText, nullable=False),
    Column("quiet", Boolean, nullable=False),
)
"""A person's preferences: a project's name (empty: none), and whether they are mentioned when a job ends."""

homes = Table(
    "homes",
    metadata,
    Column("person_id", KeyText, primary_key=True),
    *_count("page"),
    *_time("opened_at"),
    *_queue(_claimed_is_due()),
)
"""The App Homes of people who have opened them, each published again when it is due."""


listening = Table("listening", metadata, Column("owner", KeyText, primary_key=True), *_time("since"), *_time("until"))
"""From when until when each process has listened; `until` of the row without an owner is until when any has."""

gaps = Table(
    "gaps",
    metadata,
    Column("channel_id", KeyText, primary_key=True),
    Column("thread_ts", KeyText, primary_key=True),
    *_time("since"),
    *_time("until"),
    Column("asks", Boolean, nullable=False),
    Column("first", Boolean, nullable=False),
    *_time("newest"),
    *_count("attempts"),
    *_queue(),
)
"""Conversations whose history is still to be read (Gap), those with the `newest` news first."""

pull_requests = Table(
    "pull_requests",
    metadata,
    Column("thread_id", KeyText, ForeignKey("threads.id", ondelete="CASCADE"), primary_key=True),
    Column("link", CleanText, nullable=False),
    Column("followed", CleanText, nullable=False),
    Column("not_before", Double),
    *_queue(_claimed_is_due()),
)
"""The newest pull request of each thread's job; `followed` is the JSON of a FollowedPullRequest. It is followed while
it is due. `not_before`: a webhook makes it due then, or later (NULL: at once)."""

stops_seen = Table(
    "stops_seen",
    metadata,
    Column("thread_id", KeyText, ForeignKey("threads.id", ondelete="CASCADE"), primary_key=True),
    Column("person_id", KeyText, primary_key=True),
)
"""Whose reaction for a stop on a job's card was found in Slack's history."""

# Databases also have a table `faults`, which only 1.0.0 uses. The first version that needs no upgrade from it drops it.


def _among(row: FromClause, *states: RequestState) -> ColumnElement[bool]:
    # Literals, not parameters, so that a database recognizes that a partial index applies.
    return row.c.state.in_([literal_column(f"'{state}'") for state in states])


def to_be_prepared(row: FromClause) -> ColumnElement[bool]:
    """A request that was received or is being prepared."""
    return _among(row, RequestState.RECEIVED, RequestState.PREPARING)


def to_be_sent(row: FromClause) -> ColumnElement[bool]:
    """A request that waits to be sent or is being sent."""
    return _among(row, RequestState.WAITING, RequestState.SENDING)


HELD = requests.c.state == literal_column(f"'{RequestState.AWAITING_PERSON}'")


def _partial_index(name: str | None, where: ColumnElement[bool], *columns: Column[Any]) -> None:
    Index(name, *columns, postgresql_where=where, sqlite_where=where)


Index(None, threads.c.updated_at)
Index(None, threads.c.requester_id, threads.c.created_at)
_partial_index(None, threads.c.follows != "", threads.c.follows)
Index(None, requests.c.person_id, requests.c.recorded_at)
_partial_index("ix_requests_held", HELD, requests.c.recorded_at)
_OF_PERSON = (requests.c.person_id, requests.c.thread_id, requests.c.due_at)
_partial_index("ix_requests_to_be_prepared", to_be_prepared(requests), *_OF_PERSON)
_partial_index("ix_requests_to_be_sent", to_be_sent(requests), *_OF_PERSON)
_IN_ORDER = (requests.c.kind, requests.c.written_at, requests.c.recorded_at, requests.c.id)
_partial_index("ix_requests_in_order", requests.c.due_at.is_not(None), requests.c.thread_id, *_IN_ORDER)
_CLAIMED = requests.c.claimed_until
_partial_index("ix_requests_under_way", _CLAIMED.is_not(None), requests.c.thread_id, _CLAIMED)
_partial_index(None, notices.c.person_id.is_not(None), notices.c.person_id, notices.c.id)
_partial_index(None, notices.c.due_at.is_not(None), notices.c.delivery, notices.c.due_at)
for _table in (polls, pull_requests, requests, request_files, notices, homes, gaps):
    _partial_index(None, _table.c.due_at.is_not(None), _table.c.due_at)
_FOLLOWED = pull_requests.c.due_at.is_not(None)
# Hashed, because PostgreSQL's usual index refuses rows as long as a link may be.
Index(None, pull_requests.c.link, postgresql_using="hash", postgresql_where=_FOLLOWED, sqlite_where=_FOLLOWED)
for _table in (requests, notices):
    Index(None, _table.c.thread_id, _table.c.due_at)
Index(None, early_replies.c.person_id)
Index(None, message_versions.c.person_id)
Index(None, message_versions.c.noted_at)
Index(None, slack_calls.c.tat)
Index(None, channel_ids.c.known_as, channel_ids.c.changed_at)
Index(None, channel_ids.c.recorded_at)
Index(None, audit.c.at, audit.c.id)
Index(None, audit.c.person_id, audit.c.at)
Index(None, audit.c.channel_id, audit.c.at)
Index(None, counted_requests.c.person_id, counted_requests.c.at)
Index(None, counted_requests.c.at)
Index(None, drafts.c.updated_at)
Index(None, homes.c.opened_at)
Index(None, stops_seen.c.person_id)
