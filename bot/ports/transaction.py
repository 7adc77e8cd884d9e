"""The store, its transactions, and the time. The other modules here define what a transaction consists of."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from bot.ports.gaps_store import Gaps
from bot.ports.operator_store import Faults, LastTimes
from bot.ports.people_store import Audit, Drafts, EarlyReplies, Homes, Limits, MessageVersions, Preferences
from bot.ports.polling import Polls
from bot.ports.store import Claims, NoticeQueue, Notices, RequestParts, RequestQueue, Requests, Threads
from bot.ports.upkeep_store import Backlogs, ChannelIds, DatabaseCheck, Quotations, Restoration, Retention, SlackCalls

T = TypeVar("T")


class Clock(Protocol):
    """Time: `now` is in seconds since the epoch and never jumps; `monotonic` is for measuring."""

    def now(self) -> float:
        """Returns seconds since the epoch. A jump of the machine's clock while the process runs does not show."""

    def monotonic(self) -> float:
        """Returns seconds since some fixed point; it advances while the process is paused."""


class RecordingTransaction(Protocol):
    """The parts needed for recording: nothing is claimed, sent or delivered."""

    @property
    def now(self) -> float:
        """The time of this transaction on the store's clock (the database's own on PostgreSQL)."""

    @property
    def threads(self) -> Threads: ...

    @property
    def requests(self) -> Requests: ...

    @property
    def notices(self) -> Notices: ...

    @property
    def early_replies(self) -> EarlyReplies: ...

    @property
    def message_versions(self) -> MessageVersions: ...

    @property
    def channel_ids(self) -> ChannelIds: ...


class RequestTransaction(RecordingTransaction, Protocol):
    """The parts needed for preparing, carrying out and sending requests."""

    @property
    def requests(self) -> RequestQueue: ...

    @property
    def request_parts(self) -> RequestParts: ...

    @property
    def preferences(self) -> Preferences: ...

    @property
    def limits(self) -> Limits: ...

    @property
    def audit(self) -> Audit: ...

    @property
    def homes(self) -> Homes: ...


class OutboxTransaction(RequestTransaction, Protocol):
    """The parts needed for delivering notices. Requests and early replies wait for a card to be posted or given up."""

    @property
    def notices(self) -> NoticeQueue: ...

    @property
    def slack_calls(self) -> SlackCalls: ...


class UpkeepTransaction(Protocol):
    """The parts needed for upkeep: deleting, restoring, checking."""

    @property
    def now(self) -> float:
        """See RecordingTransaction."""

    @property
    def notices(self) -> Notices: ...

    @property
    def channel_ids(self) -> ChannelIds: ...

    @property
    def claims(self) -> Claims: ...

    @property
    def retention(self) -> Retention: ...

    @property
    def quotations(self) -> Quotations: ...

    @property
    def restoration(self) -> Restoration: ...

    @property
    def database_check(self) -> DatabaseCheck: ...

    @property
    def backlogs(self) -> Backlogs: ...

    @property
    def faults(self) -> Faults: ...

    @property
    def last_times(self) -> LastTimes: ...


class Transaction(OutboxTransaction, UpkeepTransaction, Protocol):
    """One database transaction with all parts: all of it happens, or nothing.

    The store passes this one. A function's signature says which part of it the function may use: one of the
    transactions above, or, if it needs only one or two subjects, those (`threads: Threads`).
    """

    @property
    def polls(self) -> Polls: ...

    @property
    def gaps(self) -> Gaps: ...

    @property
    def drafts(self) -> Drafts: ...


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
