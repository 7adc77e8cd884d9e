"""The seams between what Pagehand decides and the world: each has a real implementation and a fake for tests."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from bot.domain.models import (
    Job,
    Known,
    Mark,
    Notice,
    NoticeKind,
    Reply,
    Request,
    RequestState,
    Saying,
    Thread,
)

T = TypeVar("T")


class JobApi(Protocol):
    """The job API (specification, part 4). Every method raises only JobApiError's classes, within a bounded time."""

    async def create(self, project_id: str, prompt: str, *, idempotency_key: str) -> Job:
        """Starts a job."""

    async def send_message(self, project_id: str, job_id: str, prompt: str, *, idempotency_key: str) -> Job:
        """Sends a follow-up to a job."""

    async def get(self, project_id: str, job_id: str) -> Job:
        """Reads a job."""


class Chat(Protocol):
    """What Pagehand says in Slack. Every method raises only ChatError's classes, within a bounded time."""

    async def post_card(self, thread: Thread, key: str, *, plain: bool = False) -> str:
        """Posts the card into the thread's channel and returns its `ts`."""

    async def update_card(self, thread: Thread, *, plain: bool = False) -> None:
        """Brings the card to the thread's newest state."""

    async def post(self, thread: Thread, notice: Notice) -> str:
        """Posts the notice's words into the thread (as words only where `notice.plain`) and returns their `ts`."""

    async def find(self, thread: Thread, key: str) -> str | None:
        """The `ts` of the message that carries this key: in the thread, or, while the thread has no `ts`, in the
        channel since the thread was recorded.
        """

    async def mark(self, thread: Thread, message_ts: str, mark: Mark, *, instead_of: Collection[Mark]) -> None:
        """Puts a mark on a message and takes those away that it replaces. Doing it twice is the same as once."""

    async def tell(self, thread: Thread, notice: Notice) -> None:
        """Tells `notice.facts["person"]` alone: in the channel where possible, else in a direct message."""

    async def join(self, channel_id: str) -> None:
        """Joins a public channel; ChatNotInChannel where that can't be (it is private), ChatRefused otherwise."""


class Clock(Protocol):
    """Time as a port: `now` in seconds since the epoch, never stepping; `monotonic` for measuring."""

    def now(self) -> float:
        """Seconds since the epoch. A step of the machine's clock while the process runs does not show."""

    def monotonic(self) -> float:
        """Seconds since some fixed point; goes on while the process is paused."""


@dataclass(frozen=True)
class ClaimedRequest:
    """`uncertain`: an earlier holder died or was paused while sending, so it may have arrived."""

    request: Request
    thread: Thread
    uncertain: bool


@dataclass(frozen=True)
class ClaimedNotice:
    """A notice to deliver, with its thread as it is now."""

    notice: Notice
    thread: Thread


@dataclass(frozen=True)
class ClaimedWatch:
    """A job to poll, with its thread as known when claimed."""

    thread: Thread


@dataclass(frozen=True)
class Polled:
    """The result of one poll of a thread as it was when claimed: what is known now, and what is to be said of it."""

    thread: Thread
    known: Known
    sayings: Sequence[Saying]
    card_changed: bool
    next_in: float | None
    """Seconds till the next poll; None ends the watch."""


class Transaction(Protocol):
    """One database transaction. All of it happens or none; rows of one thread are locked by `thread(...)`."""

    @property
    def now(self) -> float:
        """The time of this transaction on the store's clock (the database's own on PostgreSQL)."""

    # -- recording ----------------------------------------------------------------------------------------------
    async def add_thread(self, thread: Thread) -> bool:
        """Records a new thread with its watch (not due: there is no job yet); False where its id is known already."""

    async def add_request(self, request: Request, *, due_in: float = 0.0) -> bool:
        """Records a request; False, and nothing recorded, where its `source_key` is known already."""

    async def say(self, thread_id: str, saying: Saying) -> None:
        """Records a notice with the key `<thread id>/<saying's key>`. A key that is known already is left alone;
        a CARD or MARK with a known key gets the new facts, a higher revision, and opens again.
        """

    async def keep_early_reply(self, reply: Reply) -> bool:
        """Keeps a reply whose thread is unknown while a card is on its way into its channel: people can answer a card
        that Slack shows before we know where it is. False, and nothing kept, where no card is on its way.
        """

    async def take_early_replies(self, channel_id: str, thread_ts: str) -> Sequence[Reply]:
        """Takes out the replies that were kept for this thread, in the order they were written. Those kept for others
        go too, unread, once no card is on its way into the channel any more.
        """

    # -- reading and changing -------------------------------------------------------------------------------------
    async def thread(self, thread_id: str) -> Thread | None:
        """The thread, locked till the end of the transaction."""

    async def thread_at(self, channel_id: str, ts: str) -> Thread | None:
        """The thread whose card has this `ts`, locked till the end of the transaction."""

    async def save_known(self, thread_id: str, known: Known, *, poll_in: float | None) -> None:
        """Saves what is known, raises the thread's revision (so that a poll under way is dropped), and makes the watch
        due in that many seconds (None: ends it). Whoever polls meanwhile keeps the claim till that poll ends.
        """

    async def set_card(self, thread_id: str, ts: str) -> None:
        """Records where the card was posted. Requests of the thread can go out from now on."""

    async def request(self, request_id: str) -> Request | None:
        """One request, locked, its thread before it."""

    async def start_request(self, thread_id: str) -> Request | None:
        """The request that started the thread."""

    async def open_follow_ups(self, thread_id: str) -> Sequence[Request]:
        """The thread's follow-ups that wait to be sent, in the order they were written."""

    async def settle_request(
        self, request_id: str, state: RequestState, *, problem: str = "", due_in: float = 0.0, afresh: bool = False
    ) -> None:
        """Ends a request, or (WAITING) makes it due again in that many seconds; frees its claim. `afresh`: it counts as
        not tried before.
        """

    async def holds_request(self, request_id: str, owner: str) -> bool:
        """Whether `owner` still has the claim on a request that is being sent."""

    # -- claims -----------------------------------------------------------------------------------------------------
    async def claim_requests(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedRequest]:
        """Takes due requests: the first open one of each thread (a start before follow-ups, these by `written_at`),
        a start only once the card is posted, a follow-up only once the job has its id. Marks them SENDING, counts the
        attempt, sets first_tried_at. A SENDING one whose lease ran out is taken as uncertain.
        """

    async def claim_notices(
        self, owner: str, *, lease: float, limit: int, held_channels: Sequence[str] = ()
    ) -> Sequence[ClaimedNotice]:
        """Takes due notices: the first open one of each thread (by id), none of the held channels. One whose lease ran
        out while it was being sent is taken as uncertain.
        """

    async def claim_watches(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedWatch]:
        """Takes watches that are due and that nobody holds, the most overdue first."""

    # -- results ------------------------------------------------------------------------------------------------------
    async def notice_done(self, notice: Notice, owner: str, *, ts: str | None) -> bool:
        """Delivered (a CARD or MARK of a newer revision stays open). False where `owner` had lost the claim."""

    async def notice_later(
        self,
        notice: Notice,
        owner: str,
        *,
        due_in: float,
        uncertain: bool = False,
        plain: bool = False,
        problem: str = "",
    ) -> bool:
        """Not delivered: due again in that many seconds."""

    async def notice_given_up(self, notice: Notice, owner: str, *, problem: str) -> bool:
        """Can't be delivered; the reason is kept."""

    async def save_polls(self, polls: Sequence[Polled], owner: str) -> int:
        """Saves polls whose watch `owner` still holds and whose thread has the same revision as when claimed: what is
        known, the sayings, the card where it changed, the next due time; frees the claims. Others are dropped (their
        watch is freed, due when whoever changed the thread said, if `owner` still holds it). Returns how many were
        saved. Unchanged ones cost one row update.
        """

    # -- removal --------------------------------------------------------------------------------------------------
    async def remove_finished(self, *, before: float, limit: int) -> int:
        """Deletes at most `limit` threads, with all that belongs to them, that did not change since `before` and in
        which nothing is open: no polling, no request, no notice. Returns how many.
        """

    async def forget(self, *, person_id: str = "", channel_id: str = "", limit: int) -> Mapping[str, int]:
        """Deletes what there is of a person (threads they began, requests and notices of theirs in others) or of a
        channel, open or not, at most `limit` rows a table. Returns how many of each table; all 0: nothing is left.
        """

    async def release(self, owner: str) -> None:
        """Frees all that `owner` holds and has not begun: watches; notices and requests it holds become due at once,
        those that may have been sent as uncertain.
        """


class Store(Protocol):
    """The database. Raises only StoreError's classes."""

    async def transact(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Runs `work` in one transaction and commits. Repeats it on a deadlock, a lock or a cut connection, so `work`
        has no effects of its own; StoreUnavailable after bounded tries (about 10 s).
        """

    async def close(self) -> None:
        """Gives back every connection."""


__all__ = [
    "Chat",
    "ClaimedNotice",
    "ClaimedRequest",
    "ClaimedWatch",
    "Clock",
    "JobApi",
    "NoticeKind",
    "Polled",
    "Store",
    "Transaction",
]
