"""The seams between what Pagehand decides and the world: each has a real implementation and a fake for tests."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from bot.domain.jobs.job import Job
from bot.domain.notices.deliver import ReactionCall
from bot.domain.notices.messages import Notice
from bot.domain.requests.request import Requester, UploadedFile
from bot.domain.threads.thread import NO_FOLLOW_UPS, FollowUpCounts, Thread
from bot.ports.parts_store import RequestParts
from bot.ports.people_store import Audit, Drafts, EarlyReplies, Homes, Limits, MessageVersions, Preferences
from bot.ports.polling import JobReader, Polls
from bot.ports.store import Claims, NoticeQueue, Notices, RequestQueue, Requests, Threads
from bot.ports.upkeep_store import DatabaseCheck, HasChannelIds, HasSlackCalls, Quotations, Restoration, Retention

T = TypeVar("T")


class JobApi(JobReader, Protocol):
    """The job API (specification, part 4); projects go by their names. Every method raises only JobApiError's classes,
    within a bounded time.
    """

    async def create(
        self,
        project: str,
        prompt: str,
        *,
        idempotency_key: str,
        requester: Requester | None = None,
        files: Sequence[UploadedFile] = (),
    ) -> Job:
        """Starts a job. `requester` and `files` go with it where the server is known to take them."""

    async def send_message(
        self,
        project: str,
        job_id: str,
        prompt: str,
        *,
        idempotency_key: str,
        requester: Requester | None = None,
        files: Sequence[UploadedFile] = (),
    ) -> Job:
        """Sends a follow-up to a job."""

    async def get(self, project: str, job_id: str) -> Job:
        """Reads a job."""

    def can_cancel(self, project: str) -> bool:
        """Whether the project's job API can cancel a job."""

    async def cancel(
        self, project: str, job_id: str, *, idempotency_key: str, requester: Requester | None = None
    ) -> Job:
        """Stops what a job is at and what it has yet to do; safe to repeat. Only where `can_cancel`."""

    async def discard(self, project: str, job_id: str, *, idempotency_key: str) -> Job:
        """Throws away what a failed job got done; safe to repeat. Only where the job's details tell of such work."""

    def takes_files(self, project: str) -> bool:
        """Whether the project's job API takes files."""

    async def upload(self, project: str, content: bytes, *, name: str, mimetype: str) -> UploadedFile:
        """Gives the job API a file; safe to repeat. Only where `takes_files`."""


class Chat(Protocol):
    """What Pagehand says in Slack. Every method raises only ChatError's classes, within a bounded time."""

    async def post_card(
        self, thread: Thread, key: str, *, follow_ups: FollowUpCounts = NO_FOLLOW_UPS, without_blocks: bool = False
    ) -> str:
        """Posts the card and returns its `ts`: into the thread, or, where that has no first message yet, into the
        channel.
        """

    async def update_card(
        self, thread: Thread, *, follow_ups: FollowUpCounts = NO_FOLLOW_UPS, without_blocks: bool = False
    ) -> None:
        """Brings the card to the thread's newest state."""

    async def post(self, thread: Thread, notice: Notice) -> str:
        """Posts the notice's words into the thread (as text where `notice.without_blocks`) and returns their `ts`.
        ChatRejected where the thread has no card.
        """

    async def find(self, thread: Thread, key: str) -> str | None:
        """The `ts` of the message that carries this key: in the thread, or, while the thread has no `ts`, in the
        channel since the thread was recorded.
        """

    async def react(self, thread: Thread, message_ts: str, call: ReactionCall) -> None:
        """Puts a reaction on a message, or takes one off. Doing it twice is the same as once."""

    async def tell(self, thread: Thread, notice: Notice, *, follow_ups: FollowUpCounts = NO_FOLLOW_UPS) -> None:
        """Tells the person whom the notice is for: in the channel where possible, else in a direct message."""

    async def join(self, channel_id: str) -> None:
        """Joins a public channel; ChatNotInChannel where only an invitation helps (it is private, or Pagehand may not
        join), ChatRejected otherwise.
        """


class People(Protocol):
    """The people of the workspace, and its channels and user groups."""

    async def names(self, ids: Sequence[str]) -> Mapping[str, str]:
        """The names by which they go, by id, or words in the place of one that is not for everybody; without those that
        cannot be had in a moment. Never raises.
        """


class Requesters(Protocol):
    """Who asked for what, as a job API is told."""

    async def requester(self, person_id: str, channel_id: str, thread_ts: str) -> Requester:
        """The person, with the thread's address where it can be had in a moment. Never raises."""


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
