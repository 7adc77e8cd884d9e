"""The store: opens a database and runs transactions in it, which offer one part per subject."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from sqlalchemy import Double, Table, Update, bindparam, case, delete, or_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.requests.audit import AuditEntry
from bot.domain.requests.request import Request
from bot.queue.claims import NOW
from bot.queue.engine import DatabaseConnection, open_database
from bot.queue.errors import StoreTimings, retry_transient
from bot.queue.postgres import PostgresPool
from bot.queue.sqlite_thread import SqliteThread
from bot.queue.transaction import start_postgres
from bot.runtime.clock import Clock, SteadyClock
from bot.runtime.logging import ThrottledLogger
from bot.store.backup import Restoration
from bot.store.claims import Claims
from bot.store.condition import Condition
from bot.store.gaps import Gaps
from bot.store.incoming import ChannelIds, EarlyReplies, MessageVersions
from bot.store.notice_queue import NoticeQueue
from bot.store.notices import Notices
from bot.store.people import Audit, Drafts, Homes, Limits, Preferences, log_entries
from bot.store.pull_requests import PullRequests
from bot.store.request_parts import RequestParts
from bot.store.request_queue import RequestQueue
from bot.store.requests import Requests, log_recorded
from bot.store.retention import Retention
from bot.store.schema.migration import require_usable
from bot.store.schema.tables import gaps, homes, notices, polls, pull_requests, request_files, requests, slack_calls
from bot.store.session import Session
from bot.store.slack_calls import SlackCalls
from bot.store.threads import Polls, Threads

T = TypeVar("T")
logger = logging.getLogger(__name__)


class RecordingTransaction:
    """The parts needed for recording: nothing is claimed, sent or delivered."""

    now: float
    """The time of this transaction on the store's clock (the database's own on PostgreSQL)."""
    threads: Threads
    requests: Requests
    notices: Notices
    early_replies: EarlyReplies
    message_versions: MessageVersions
    channel_ids: ChannelIds


class RequestTransaction(RecordingTransaction):
    """The parts needed for preparing, carrying out and sending requests."""

    requests: RequestQueue
    request_parts: RequestParts
    preferences: Preferences
    limits: Limits
    audit: Audit
    homes: Homes
    pull_requests: PullRequests


class OutboxTransaction(RequestTransaction):
    """The parts needed for delivering notices. Requests and early replies wait for a card to be posted or given up."""

    notices: NoticeQueue
    slack_calls: SlackCalls


class UpkeepTransaction:
    """The parts needed for upkeep: deleting, restoring, checking."""

    now: float
    notices: Notices
    channel_ids: ChannelIds
    claims: Claims
    retention: Retention
    restoration: Restoration
    condition: Condition
    pull_requests: PullRequests


class Transaction(OutboxTransaction, UpkeepTransaction):
    """One database transaction with all parts: all of it happens, or nothing.

    The store passes this one. A function's signature says which part of it the function may use: one of the
    transactions above, or, if it needs only one or two subjects, those (`threads: Threads`).
    """

    notices: NoticeQueue
    polls: Polls
    gaps: Gaps
    drafts: Drafts

    def __init__(self, session: Session) -> None:
        self.session = session
        self.now = session.now
        self.threads = Threads(session)
        self.slack_calls = SlackCalls(session)
        self.notices = NoticeQueue(session, self.slack_calls)
        self.requests = RequestQueue(session, self.notices)
        self.request_parts = RequestParts(session)
        self.polls = Polls(session, self.notices)
        self.pull_requests = PullRequests(session)
        self.early_replies = EarlyReplies(session)
        self.message_versions = MessageVersions(session)
        self.channel_ids = ChannelIds(session)
        self.gaps = Gaps(session)
        self.claims = Claims(session)
        self.retention = Retention(session)
        self.restoration = Restoration(session)
        self.audit = Audit(session)
        self.limits = Limits(session)
        self.drafts = Drafts(session)
        self.preferences = Preferences(session)
        self.homes = Homes(session)
        self.condition = Condition(session)


class Store(Protocol):
    """The database. Raises only StoreError's classes."""

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, urgent: bool = False) -> T:
        """Runs `work` in one transaction and commits. After a deadlock, a lock or a lost connection `work` is repeated,
        so it must have no effects of its own; it may run in another thread, and awaits nothing but the transaction's
        methods. `urgent` work, whose acknowledgement somebody waits for, runs first. Raises StoreUnavailable after
        a limited number of attempts (about 10 s).
        """

    async def close(self) -> None:
        """Closes every connection."""


Committed = Callable[[Sequence[AuditEntry], int], None]
"""Is told the audit entries of a transaction, and how many rows it claimed whose lease had run out."""


_FURTHEST_AHEAD = 90.0
"""Seconds ahead of now; everything that Pagehand delays or claims is due earlier. A later time is most likely from
before a clock was set back. If somebody did ask to wait longer, asking again early does no harm.
"""
_LATEST_READ = 5_000.0
"""The same for pull requests, which are read once an hour when nothing happens to them."""
_LARGEST_STEP_BACK = 30.0
"""Seconds by which the database's clock may fall behind ours before it counts as set back."""


def _pulling_in(table: Table) -> Update:
    due_at, claimed_until = table.c.due_at, table.c.claimed_until
    far_due = due_at > NOW + (_LATEST_READ if table is pull_requests else _FURTHEST_AHEAD)
    far_claimed = claimed_until > NOW + _FURTHEST_AHEAD
    # Only due rows can be claimed, so the index of due rows finds both.
    far = update(table).where(due_at.is_not(None), or_(far_due, far_claimed))
    return far.values(
        due_at=case((far_due, NOW), else_=due_at),
        claimed_until=case((far_claimed, bindparam("lease_end", type_=Double)), else_=claimed_until),
    )


_PULL_IN = (
    *map(_pulling_in, (polls, pull_requests, requests, request_files, notices, homes, gaps)),
    # Slack may have asked to wait longer; at worst it asks again.
    delete(slack_calls).where(slack_calls.c.tat > NOW + _FURTHEST_AHEAD),
)


async def open_store(
    url: str,
    *,
    clock: Clock | None = None,
    timings: StoreTimings | None = None,
    committed: Committed = lambda _, __: None,
) -> Store:
    """Opens a database whose schema is current, or newer and compatible.

    Args:
        url: See `open_database`.
        clock: Returns the time; by default the database's own on PostgreSQL, and a steady one on SQLite.
        timings: The time limits.
        committed: See Committed.

    Raises:
        ConfigError: The URL does not name a database.
        SchemaMismatch: Its tables are missing, older or newer.
        StoreError: It cannot be opened.
    """
    timings = timings or StoreTimings()
    database = open_database(url, timings)
    if clock is None and isinstance(database, SqliteThread):
        clock = SteadyClock()
    store = SqlStore(database, clock, timings.retry_for, committed)
    try:
        await store.check()
    except BaseException:
        await store.close()
        raise
    return store


class SqlStore:
    """A `Store` over one database."""

    def __init__(
        self, database: SqliteThread | PostgresPool, clock: Clock | None, retry_for: float, committed: Committed
    ) -> None:
        self._database = database
        self._retry_for = retry_for
        self._committed = committed
        self._clock = clock
        self._on_sqlite = isinstance(database, SqliteThread)
        self._steady = SteadyClock()
        self._ahead: float | None = None
        self._set_back = False
        self._rare_log = ThrottledLogger(logger, every=3600.0)

    async def check(self) -> None:
        """Refuses a schema that this program cannot work with, and repairs times that a clock set back left in the far
        future.
        """

        async def work(connection: DatabaseConnection) -> None:
            await connection.run_sync(require_usable)
            await self._pull_in_far_times(connection)

        await self._run(work)

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, urgent: bool = False) -> T:
        if self._set_back:
            await self._repair_times()

        recorded: Sequence[AuditEntry] = ()
        requested: Sequence[Request] = ()
        takeovers = 0

        async def in_transaction(connection: DatabaseConnection) -> T:
            nonlocal recorded, requested, takeovers
            transaction = Transaction(Session(connection, await self._now(connection), self._rare_log))
            result = await work(transaction)
            # Of the last attempt, which is the one that was committed.
            recorded, requested = transaction.audit.added, transaction.requests.added
            takeovers = transaction.session.takeovers
            return result

        result = await self._run(in_transaction, urgent=urgent)
        log_recorded(requested)
        log_entries(recorded)
        if recorded or takeovers:
            self._committed(recorded, takeovers)
        return result

    async def close(self) -> None:
        await self._database.close()

    async def _run(self, work: Callable[[DatabaseConnection], Awaitable[T]], *, urgent: bool = False) -> T:
        return await retry_transient(
            lambda end: self._database.run(work, urgent=urgent, end=end), retry_for=self._retry_for
        )

    async def _now(self, connection: DatabaseConnection) -> float:
        database_time = await start_postgres(connection) if isinstance(connection, AsyncConnection) else None
        if self._clock is not None:
            return self._clock.now()
        if database_time is None:
            raise AssertionError("a SQLite store has a clock")
        self._notice_step_back(database_time)
        return database_time

    def _notice_step_back(self, database_time: float) -> None:
        """Detects whether the database's clock was set back, which would delay everything that waits by as much."""
        ahead = database_time - self._steady.monotonic()
        if self._ahead is not None and ahead < self._ahead - _LARGEST_STEP_BACK:
            logger.warning("The database's clock was set back by %.0f s.", self._ahead - ahead)
            self._set_back = True
        if self._ahead is None or self._set_back or ahead > self._ahead:
            self._ahead = ahead

    async def _repair_times(self) -> None:
        self._set_back = False
        try:
            await self._run(self._pull_in_far_times)
        except BaseException:
            self._set_back = True
            raise

    async def _pull_in_far_times(self, connection: DatabaseConnection) -> None:
        """Repairs times that a clock set back left in the far future."""
        now = await self._now(connection)
        # SQLite's only process has just started, so nothing is claimed; on PostgreSQL others may be working.
        lease_end = now if self._on_sqlite else now + _FURTHEST_AHEAD
        for statement in _PULL_IN:
            await connection.execute(statement, {"now": now, "lease_end": lease_end})
