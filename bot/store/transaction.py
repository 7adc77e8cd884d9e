"""The store and its transactions: which parts each consists of."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from bot.store.audit import Audit
from bot.store.channel_ids import ChannelIds
from bot.store.claims import Claims
from bot.store.incoming import EarlyReplies, MessageVersions
from bot.store.notice_queue import NoticeQueue
from bot.store.notices import Notices
from bot.store.people import Drafts, Homes, Limits, Preferences
from bot.store.polls import Polls
from bot.store.request_parts import RequestParts
from bot.store.request_queue import RequestQueue
from bot.store.requests import Requests
from bot.store.session import Session
from bot.store.slack_calls import SlackCalls
from bot.store.threads import Threads
from bot.store.upkeep.backlog import Backlogs
from bot.store.upkeep.database_check import DatabaseCheck
from bot.store.upkeep.gaps import Gaps
from bot.store.upkeep.last_times import LastTimes
from bot.store.upkeep.quotations import Quotations
from bot.store.upkeep.restoration import Restoration
from bot.store.upkeep.retention import Retention

T = TypeVar("T")


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
    quotations: Quotations
    restoration: Restoration
    database_check: DatabaseCheck
    backlogs: Backlogs
    last_times: LastTimes


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
        self.early_replies = EarlyReplies(session)
        self.message_versions = MessageVersions(session)
        self.channel_ids = ChannelIds(session)
        self.gaps = Gaps(session)
        self.claims = Claims(session)
        self.retention = Retention(session)
        self.quotations = Quotations(session)
        self.restoration = Restoration(session)
        self.audit = Audit(session)
        self.limits = Limits(session)
        self.drafts = Drafts(session)
        self.preferences = Preferences(session)
        self.homes = Homes(session)
        self.database_check = DatabaseCheck(session)
        self.backlogs = Backlogs(session)
        self.last_times = LastTimes(session)


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
