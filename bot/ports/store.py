"""The store's main ports, one for each subject, and their values.

`bot.ports.transaction` says which transactions have them; `bot.store.session` says which rows are locked, and in which
order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.context.fetched_parts import FetchedParts, FileOutcome, SettledFile
from bot.domain.context.slack_files import SlackFile
from bot.domain.notices.deliver import ReactionProgress
from bot.domain.notices.keys import NoticeKey
from bot.domain.notices.messages import NewNotice, Notice
from bot.domain.requests.request import Request, RequestContext, Requester, RequestState
from bot.domain.slack_limits import SLACK_LIMITS, SlackLimits
from bot.domain.threads.thread import NO_FOLLOW_UPS, FollowUpCounts, Thread, ThreadOptions, ThreadOrigin, ThreadState


@dataclass(frozen=True)
class ClaimedRequest:
    """A claimed request. `uncertain`: an earlier holder died or was paused while sending, so it may have arrived.
    `merged`: the requests that are sent with it as one message, in the order they were written. `taken_over`: an
    earlier holder did not finish. `waited`: its message may have been changed since, and Pagehand not been told.
    """

    request: Request
    thread: Thread
    uncertain: bool
    merged: tuple[Request, ...] = ()
    taken_over: bool = False
    waited: bool = False


@dataclass(frozen=True)
class AheadOfCards:
    """The projects whose jobs are created before their card is posted, if they follow no other job: `anywhere`, or only
    `in_threads` that exist already.
    """

    anywhere: Sequence[str] = ()
    in_threads: Sequence[str] = ()


NOT_AHEAD = AheadOfCards()


@dataclass(frozen=True)
class ClaimedNotice:
    """A notice to deliver, with its thread as it is now. `follow_ups` are only counted for a CARD or an EPHEMERAL."""

    notice: Notice
    thread: Thread
    follow_ups: FollowUpCounts = NO_FOLLOW_UPS


class Threads(Protocol):
    """The threads, with the state of their jobs."""

    async def add(self, thread: Thread) -> bool:
        """Records a new thread, which is not polled yet because it has no job; False if its id is known already."""

    async def get(self, thread_id: str) -> Thread | None:
        """Returns the thread, locked until the end of the transaction."""

    async def find_newest(self, channel_id: str, ts: str) -> Thread | None:
        """Returns the thread of the newest job in the Slack thread that begins with this `ts`, locked until the end of
        the transaction.
        """

    async def newest_of(self, channel_id: str, *, limit: int) -> Sequence[Thread]:
        """Returns the threads in a channel, newest first; not locked."""

    async def find_by_card(self, channel_id: str, card_ts: str) -> Thread | None:
        """Returns the thread whose card has this `ts`, locked until the end of the transaction."""

    async def set_project(self, thread_id: str, project: str, options: ThreadOptions) -> None:
        """Records which project a thread's job is for, and why."""

    async def set_origin(self, thread_id: str, origin: ThreadOrigin) -> None:
        """Records the first message of a job's Slack thread, once it is known."""

    async def attach(self, thread: Thread) -> Thread:
        """Gives a job its place in the Slack thread that it was asked for in, as the newest there."""

    async def detach(self, thread_id: str) -> None:
        """Detaches a job that will never have a card: replies in the Slack thread no longer count for it."""

    async def of_person(self, person_id: str, *, offset: int, limit: int) -> Sequence[Thread]:
        """Returns the threads whose jobs somebody asked for, newest first; not locked."""

    async def save_state(self, thread_id: str, state: ThreadState, *, poll_in: float | None) -> None:
        """Saves the state, raises the thread's revision (so that the result of a poll in progress is dropped), and
        makes the poll due in this many seconds (None: never). A poller keeps its claim until the claim ends.
        """

    async def set_card(self, thread_id: str, card_ts: str) -> None:
        """Records where the card was posted, which begins the Slack thread if nothing else does. From now on the
        thread's requests can be sent.
        """


class Requests(Protocol):
    """The requests of people."""

    async def add(self, request: Request, *, due_in: float = 0.0) -> bool:
        """Records a request, due in this many seconds; False, with nothing recorded, if its `source_key` is known
        already.
        """

    async def get(self, request_id: str) -> Request | None:
        """Returns a request, locked after its thread."""

    async def find_start(self, thread_id: str) -> Request | None:
        """Returns the request that started the thread."""

    async def held(self, thread_id: str, person_id: str) -> Sequence[Request]:
        """Returns somebody's follow-ups in a thread that wait for their answer, in the order they were written."""

    async def stops(self, thread_id: str) -> Sequence[Request]:
        """Returns all stops of the thread's job."""

    async def find_by_reply(self, thread_id: str, message_ts: str) -> Sequence[Request]:
        """Returns the requests made from one reply and its edits, locked (lock the thread first), oldest first."""

    async def waiting_follow_ups(self, thread_id: str) -> Sequence[Request]:
        """Returns the thread's follow-ups that wait to be sent, in the order they were written."""

    async def several_wait(self, thread_id: str) -> bool:
        """Returns whether more than one follow-up of the thread waits to be sent."""

    async def save(self, request: Request, *, due_in: float = 0.0) -> None:
        """Saves a request's texts, attachments, times, state and problem. A waiting request keeps its due time, or is
        due in this many seconds if it had none; a claim for preparing or sending stays. A start's text becomes its
        thread's prompt, unless it was withdrawn.
        """

    async def settle(
        self,
        request_id: str,
        state: RequestState,
        *,
        problem: str = "",
        due_in: float = 0.0,
        afresh: bool = False,
        uncertain: bool = False,
    ) -> None:
        """Ends a request, or (WAITING) makes it due again in this many seconds; frees its claim. `afresh`: it counts as
        not tried before. `uncertain`: it may have arrived, which is never unset.
        """

    async def unsent(self, thread_id: str) -> Sequence[Request]:
        """Returns the requests about a thread's job that were certainly not sent: follow-ups, held replies, and words
        for Pagehand; in the order they were written. Lock the thread first.
        """

    async def move(self, unsent: Sequence[Request], thread_id: str) -> None:
        """Moves unsent requests, with the marks on their messages, to another thread, where they are prepared again.
        Lock both threads first.
        """

    async def remove(self, request: Request) -> None:
        """Removes a request that waits for its person's answer, so that its message can become another one."""


class RequestQueue(Requests, Protocol):
    """The same, with preparing and sending."""

    async def claim_received(
        self, owner: str, *, lease: float, limit: int, turn: float = 0.0
    ) -> Sequence[ClaimedRequest]:
        """Claims requests to prepare, and marks them PREPARING: one per person, then another one each, from another
        thread if there is one. `turn`, from 0 to 1, decides who comes first.
        """

    async def prepared(self, request: Request, *, due_in: float = 0.0) -> None:
        """Records a prepared request that the caller holds: its state, problem and context. One that waits to be sent
        is due in this many seconds. Frees the claim.
        """

    async def not_tried(self, request_id: str, *, due_in: float, problem: str) -> None:
        """Returns a request that is being prepared to RECEIVED, due in this many seconds, without counting the try.
        Frees the claim.
        """

    async def has_pending_start(self, thread_id: str) -> bool:
        """Returns whether a job that will follow this thread's has not passed its checks yet."""

    async def waiting_for(self, person_id: str, *, limit: int) -> Sequence[tuple[Request, Thread]]:
        """Returns the oldest requests that wait for their person, with the threads of their jobs; not locked."""

    async def merge(self, first: Request, others: Sequence[Request], owner: str, *, lease: float) -> None:
        """Merges waiting follow-ups of the thread, which is locked, into one that `owner` has claimed: each gets the
        same claim, and names that one.
        """

    async def merged_into(self, request_id: str) -> Sequence[Request]:
        """Returns the requests merged into this one, in the order they were written, locked."""

    async def unmerge(self, request_id: str) -> None:
        """Undoes a merge: the others are sent separately, or with others."""

    async def follow_ups_after(self, first: Request, *, limit: int) -> Sequence[Request]:
        """Returns the follow-ups of the thread, which is locked, to be sent after this one, in the order they were
        written: at most `limit`, up to one that cannot be read or waits for a file.
        """

    async def on_their_way(self, thread_id: str) -> Sequence[Request]:
        """Returns the thread's start and follow-ups that are prepared and waiting, or being sent, in the order they
        were written.
        """

    async def claim(
        self, owner: str, *, lease: float, limit: int, turn: float = 0.0, ahead: AheadOfCards = NOT_AHEAD
    ) -> Sequence[ClaimedRequest]:
        """Claims due requests, in turns like `claim_received`: the first open one of each thread (a start first, then a
        stop, then follow-ups by `written_at`), a start once the card is posted, or before if it is one of those that go
        `ahead` and no post in its channel is failing; a follow-up only once the job has its id and its card, and no
        other job is about to follow. Marks them SENDING, counts the attempt, sets first_tried_at. A SENDING one whose
        lease ran out is claimed as uncertain, and its row says so.
        """

    async def is_claimed_by(self, request_id: str, owner: str) -> bool:
        """Returns whether `owner` still has the claim on a request that is being sent: until somebody else claims it,
        even after its lease ran out. Locks the request.
        """

    async def set_text(self, request_id: str, text: str) -> None:
        """Sets a request's text."""

    async def set_requester(self, request_id: str, requester: Requester) -> None:
        """Sets the requester that the job API gets."""


class Notices(Protocol):
    """The notices to be delivered to threads."""

    async def add(self, thread_id: str, notice: NewNotice) -> None:
        """Records a notice. One with a key known in the thread is ignored, except that a CARD or REACTION gets the new
        message and a higher revision, and is reopened, unless it is the card of a job that was given up before it was
        posted. An end deletes the posts that are held back.
        """

    async def move(self, key: NoticeKey, from_thread: str, to_thread: str) -> None:
        """Moves the notice about a message, if there is one, to another thread; both are locked."""

    async def try_again(self, thread_id: str, key: NoticeKey) -> None:
        """Makes a notice due again that was given up. It is looked for first, since it may have arrived."""

    async def drop_held(self, thread_id: str) -> None:
        """Deletes the posts that are held back in the thread, which is locked: those that are not due yet."""

    async def has(self, thread_id: str, key: NoticeKey) -> bool:
        """Returns whether a notice with this key was recorded in the thread, which is locked."""

    async def is_open(self, thread_id: str, key: NoticeKey) -> bool:
        """Returns whether a notice with this key is still to be delivered in the thread, which is locked."""


class NoticeQueue(Notices, Protocol):
    """The same, with delivering. Each result is False if `owner` had lost the claim."""

    async def claim(
        self,
        owner: str,
        *,
        lease: float,
        limit: int,
        limits: SlackLimits = SLACK_LIMITS,
        max_reactions: int | None = None,
    ) -> Sequence[ClaimedNotice]:
        """Claims due notices: any REACTION (at most `max_reactions`), and otherwise the first open one of each thread
        (the CARD, then by id; an EPHEMERAL does not wait for a POST, a POST waits for the card). Of each kind it claims
        as many as may be called now, in the order of CallKind; each counts as a call. Counts the attempt. One whose
        lease ran out while it was being sent is claimed as uncertain.
        """

    async def delivered(self, notice: Notice, owner: str, *, ts: str | None) -> bool:
        """Ends a notice; a CARD or REACTION with a newer revision stays open. `ts`: the message's, if there is one."""

    async def reacted(self, notice: Notice, owner: str, progress: ReactionProgress) -> bool:
        """Records that Slack accepted a call for a REACTION: the notice ends, or is due again for the next call."""

    async def postpone(
        self,
        notice: Notice,
        owner: str,
        *,
        due_in: float,
        uncertain: bool = False,
        without_blocks: bool = False,
        problem: str = "",
    ) -> bool:
        """Makes a notice due again in this many seconds. `uncertain`: it may have arrived, which holds until it is
        delivered. `without_blocks`: Slack refused it with them.
        """

    async def give_up(self, notice: Notice, owner: str, *, problem: str) -> bool:
        """Ends a notice that cannot be delivered, and records the reason; a newer revision is still tried."""


class Claims(Protocol):
    """Claims of every kind."""

    async def release(self, owner: str) -> None:
        """Frees everything that `owner` holds. Polls keep their due times; notices and requests become due at once,
        as uncertain (use `settle` and `postpone` before for those that were not begun).
        """


@dataclass(frozen=True)
class ClaimedFile:
    """A file to upload for a request, with the thread as it was when claimed. `attempts` includes this try."""

    request_id: str
    position: int
    file: SlackFile
    thread: Thread
    attempts: int


class RequestParts(Protocol):
    """The context of requests: fetched parts, and files to upload."""

    async def fetched(self, request_id: str) -> FetchedParts:
        """Returns the parts stored for a request that is being prepared."""

    async def keep_fetched(self, request_id: str, parts: FetchedParts) -> None:
        """Stores fetched parts until the request changes its state."""

    async def to_upload(self, request_id: str, files: Sequence[SlackFile]) -> None:
        """Makes a waiting request, which is held, wait for the upload of exactly these files."""

    async def claim(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedFile]:
        """Claims due files of waiting requests, and counts the attempt. Files of requests that no longer wait are
        dropped; those of a request that was returned are due again with it.
        """

    async def is_claimed_by(self, claimed: ClaimedFile, owner: str) -> bool:
        """Returns whether `owner` still has the claim. Locks the file."""

    async def postpone(self, claimed: ClaimedFile, *, due_in: float) -> None:
        """Makes a claimed file due again in this many seconds."""

    async def fails(self, claimed: ClaimedFile) -> float:
        """Records that Slack does not return a claimed file; returns since when (on the store's clock)."""

    async def settle(self, claimed: ClaimedFile, outcome: FileOutcome) -> None:
        """Records the outcome of a claimed file."""

    async def settled(self, request_id: str) -> Sequence[SettledFile] | None:
        """Returns all files of a request in order; None until all are uploaded or given up."""

    async def tried(self, request_id: str) -> None:
        """Records that sending a request began (with its first file), unless that was recorded before."""

    async def complete(self, request_id: str, context: RequestContext) -> None:
        """Releases a request whose files are settled, with this context."""
