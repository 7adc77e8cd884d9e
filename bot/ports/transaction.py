"""The store, its transactions and the time. `bot.ports.store` and its neighbours hold the parts of a transaction."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from bot.ports.people_store import Audit, Drafts, EarlyReplies, Homes, Limits, MessageVersions, Preferences
from bot.ports.polling import Polls
from bot.ports.store import Claims, NoticeQueue, Notices, RequestParts, RequestQueue, Requests, Threads
from bot.ports.upkeep_store import DatabaseCheck, HasChannelIds, HasSlackCalls, Quotations, Restoration, Retention

T = TypeVar("T")


class Clock(Protocol):
    """Time as a port: `now` in seconds since the epoch, never stepping; `monotonic` for measuring."""

    def now(self) -> float:
        """Seconds since the epoch. A step of the machine's clock while the process runs does not show."""

    def monotonic(self) -> float:
        """Seconds since some fixed point; goes on while the process is paused."""


class HasNow(Protocol):
    """A transaction that tells the time."""

    @property
    def now(self) -> float:
        """The time of this transaction on the store's clock (the database's own on PostgreSQL)."""


class HasThreads(Protocol):
    """A transaction with the threads."""

    @property
    def threads(self) -> Threads: ...


class HasRequests(Protocol):
    """A transaction with what people asked for."""

    @property
    def requests(self) -> Requests: ...


class HasRequestQueue(Protocol):
    """A transaction with what people asked for, and sending it."""

    @property
    def requests(self) -> RequestQueue: ...


class HasRequestParts(Protocol):
    """A transaction with what goes along with requests."""

    @property
    def request_parts(self) -> RequestParts: ...


class HasNotices(Protocol):
    """A transaction with what is owed to threads."""

    @property
    def notices(self) -> Notices: ...


class HasNoticeQueue(Protocol):
    """A transaction with what is owed to threads, and delivering it."""

    @property
    def notices(self) -> NoticeQueue: ...


class HasPolls(Protocol):
    """A transaction with the polling."""

    @property
    def polls(self) -> Polls: ...


class HasEarlyReplies(Protocol):
    """A transaction with replies that came before their card."""

    @property
    def early_replies(self) -> EarlyReplies: ...


class HasMessageVersions(Protocol):
    """A transaction in which versions of messages can be noted."""

    @property
    def message_versions(self) -> MessageVersions: ...


class HasAudit(Protocol):
    """A transaction with the audit trail."""

    @property
    def audit(self) -> Audit: ...


class HasLimits(Protocol):
    """A transaction with how much people have asked for lately."""

    @property
    def limits(self) -> Limits: ...


class HasDrafts(Protocol):
    """A transaction with drafts."""

    @property
    def drafts(self) -> Drafts: ...


class HasPreferences(Protocol):
    """A transaction with what people prefer."""

    @property
    def preferences(self) -> Preferences: ...


class HasHomes(Protocol):
    """A transaction with App Homes."""

    @property
    def homes(self) -> Homes: ...


class HasRetention(Protocol):
    """A transaction with deleting."""

    @property
    def retention(self) -> Retention: ...


class Transaction(
    HasNow,
    HasThreads,
    HasRequestQueue,
    HasRequestParts,
    HasNoticeQueue,
    HasPolls,
    HasEarlyReplies,
    HasMessageVersions,
    HasChannelIds,
    HasSlackCalls,
    HasRetention,
    HasAudit,
    HasLimits,
    HasDrafts,
    HasPreferences,
    HasHomes,
    Protocol,
):
    """One database transaction, whole: all of it happens, or nothing.

    Whoever works in one declares a protocol of what it touches, and is given this, which has it all:

        class PollerTransaction(HasNow, HasPolls, Protocol): ...
    """

    @property
    def claims(self) -> Claims: ...

    @property
    def database_check(self) -> DatabaseCheck: ...

    @property
    def quotations(self) -> Quotations: ...

    @property
    def restoration(self) -> Restoration: ...


class Store(Protocol):
    """The database. Raises only StoreError's classes."""

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, urgent: bool = False) -> T:
        """Runs `work` in one transaction and commits. Repeats it on a deadlock, a lock or a cut connection, so `work`
        has no effects of its own; it may run in another thread, and awaits nothing but the transaction's methods.
        What is `urgent`, since somebody waits for its acknowledgement, goes first. StoreUnavailable after bounded tries
        (about 10 s).
        """

    async def close(self) -> None:
        """Gives back every connection."""
