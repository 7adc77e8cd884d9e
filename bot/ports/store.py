"""The small ports of the store: what can be done in a transaction, a port for each subject, and the values they take.

Which of them a transaction has is told in `bot.ports.transaction`; which rows are locked, and in which order, in
`bot.store.session`.
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
    """`uncertain`: an earlier holder died or was paused while sending, so it may have arrived. `merged`: what goes out
    with it as one message, in the order it was written.
    """

    request: Request
    thread: Thread
    uncertain: bool
    merged: tuple[Request, ...] = ()


@dataclass(frozen=True)
class ClaimedNotice:
    """A notice to deliver, with its thread as it is now. `follow_ups` are counted for a CARD and an EPHEMERAL alone."""

    notice: Notice
    thread: Thread
    follow_ups: FollowUpCounts = NO_FOLLOW_UPS


class Threads(Protocol):
    """The threads, with what is known of their jobs."""

    async def add(self, thread: Thread) -> bool:
        """Records a new thread, which is not polled yet since it has no job; False where its id is known already."""

    async def get(self, thread_id: str) -> Thread | None:
        """The thread, locked till the end of the transaction."""

    async def find_newest(self, channel_id: str, ts: str) -> Thread | None:
        """The newest job's thread among those of the Slack thread that begins with this `ts`, locked till the end of
        the transaction.
        """

    async def newest_of(self, channel_id: str, *, limit: int) -> Sequence[Thread]:
        """The threads in a channel, the last one there first; not locked."""

    async def find_by_card(self, channel_id: str, card_ts: str) -> Thread | None:
        """The thread whose card has this `ts`, locked till the end of the transaction."""

    async def set_project(self, thread_id: str, project: str, options: ThreadOptions) -> None:
        """Records for which project a thread's job is, and why."""

    async def set_origin(self, thread_id: str, origin: ThreadOrigin) -> None:
        """Records with what a job's Slack thread turned out to begin."""

    async def attach(self, thread: Thread) -> Thread:
        """Has a job take its place in the Slack thread that it was asked for in, as the newest there."""

    async def detach(self, thread_id: str) -> None:
        """Has replies in the Slack thread not count for this job any more: it will never have a card."""

    async def of_person(self, person_id: str, *, offset: int, limit: int) -> Sequence[Thread]:
        """The threads whose jobs somebody asked for, newest first; not locked."""

    async def save_state(self, thread_id: str, state: ThreadState, *, poll_in: float | None) -> None:
        """Saves what is known, raises the thread's revision (so that the result of a poll under way is dropped), and
        has the job polled in that many seconds (None: no more). Whoever polls meanwhile keeps the claim till that ends.
        """

    async def set_card(self, thread_id: str, card_ts: str) -> None:
        """Records where the card was posted, which begins the thread where nothing else does. Requests of the thread
        can go out from now on.
        """


class Requests(Protocol):
    """What people asked for."""

    async def add(self, request: Request, *, due_in: float = 0.0) -> bool:
        """Records a request, due in that many seconds; False, and nothing recorded, where its `source_key` is known
        already.
        """

    async def get(self, request_id: str) -> Request | None:
        """One request, locked, its thread before it."""

    async def find_start(self, thread_id: str) -> Request | None:
        """The request that started the thread."""

    async def held(self, thread_id: str, person_id: str) -> Sequence[Request]:
        """Somebody's follow-ups in a thread that wait for their answer, in the order they were written."""

    async def find_by_reply(self, thread_id: str, message_ts: str) -> Sequence[Request]:
        """What was asked for by one reply and its edits, locked (the thread has to be, too), oldest first."""

    async def waiting_follow_ups(self, thread_id: str) -> Sequence[Request]:
        """The thread's follow-ups that wait to be sent, in the order they were written."""

    async def several_wait(self, thread_id: str) -> bool:
        """Whether more than one follow-up of the thread waits to be sent."""

    async def save(self, request: Request, *, due_in: float = 0.0) -> None:
        """Saves a request's texts, attachments, edit, state and problem. One that waits keeps its due time, or is due
        in that many seconds where it had none; the claim of one that is being prepared or sent stays. What a start asks
        for is what its thread shows from then on; one that was withdrawn shows what it asked for.
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
        """Ends a request, or (WAITING) makes it due again in that many seconds; frees its claim. `afresh`: it counts as
        not tried before. `uncertain`: it may have arrived, which is never unlearnt.
        """

    async def unsent(self, thread_id: str) -> Sequence[Request]:
        """What was asked about the job of a thread, which is locked, and certainly did not go out: follow-ups, those
        that wait for their person too, and words for Pagehand; in the order they were written.
        """

    async def move(self, unsent: Sequence[Request], thread_id: str) -> None:
        """Makes unsent requests those of another thread, where they are prepared anew, with the marks on their
        messages. Both threads are locked.
        """

    async def remove(self, request_id: str) -> None:
        """Removes a request that waits for its person's answer, so that another one can be made of its message."""


class RequestQueue(Requests, Protocol):
    """The same, preparing and sending them."""

    async def claim_received(
        self, owner: str, *, lease: float, limit: int, turn: float = 0.0
    ) -> Sequence[ClaimedRequest]:
        """Takes requests that are to be prepared, and marks them PREPARING: one of each person, then another of each,
        from another thread where there is one. With whom it begins depends on `turn`, which is from 0 to 1.
        """

    async def prepared(self, request: Request, *, due_in: float = 0.0) -> None:
        """Records what preparing made of a request that the caller holds: its state, problem and context; one that
        waits to be sent is due in that many seconds. Frees the claim.
        """

    async def not_tried(self, request_id: str, *, due_in: float, problem: str) -> None:
        """Has a request that is being prepared received again in that many seconds, as if this try had not been. Frees
        the claim.
        """

    async def has_pending_start(self, thread_id: str) -> bool:
        """Whether a job that is to follow that of this thread has not passed its checks yet."""

    async def merge(self, first: Request, others: Sequence[Request], owner: str, *, lease: float) -> None:
        """Has waiting follow-ups of the thread, which is locked, go out with one that `owner` has claimed: each is
        claimed like that one, and names it.
        """

    async def merged_into(self, request_id: str) -> Sequence[Request]:
        """The requests that go out with this one, in the order they were written, locked."""

    async def unmerge(self, request_id: str) -> None:
        """Has those that were to go out with this one go out by themselves, or with others."""

    async def following(self, first: Request, *, limit: int) -> Sequence[Request]:
        """The follow-ups of the thread, which is locked, that are to be sent after this one, in the order they were
        written: at most so many, up to one that cannot be read, or that waits for a file.
        """

    async def on_their_way(self, thread_id: str) -> Sequence[Request]:
        """The thread's start and follow-ups that are prepared, and wait or are being sent, in the order they were
        written.
        """

    async def stops(self, thread_id: str) -> Sequence[Request]:
        """Every stop of the thread's job."""

    async def claim(self, owner: str, *, lease: float, limit: int, turn: float = 0.0) -> Sequence[ClaimedRequest]:
        """Takes due requests, round robin as `claim_received`: the first open one of each thread (a start first, then a
        stop, then follow-ups by `written_at`), a start only once the card is posted, a follow-up only once the job has
        its id and while no other job is about to follow. Marks them SENDING, counts the attempt, sets first_tried_at.
        A SENDING one whose lease ran out is taken as uncertain, and its row says so.
        """

    async def is_claimed_by(self, request_id: str, owner: str) -> bool:
        """Whether `owner` still has the claim on a request that is being sent: it has until somebody else takes it,
        even when its lease ran out. The request is locked.
        """

    async def set_text(self, request_id: str, text: str) -> None:
        """Records what a request says from now on."""

    async def set_requester(self, request_id: str, requester: Requester) -> None:
        """Records who the job API is told asked for this."""


class Notices(Protocol):
    """What Pagehand owes the threads."""

    async def add(self, thread_id: str, notice: NewNotice) -> None:
        """Records a notice. A key that is known already in the thread is left alone; of a CARD or REACTION with a known
        key the row gets the new message, a higher revision, and opens again. An end drops what is held back.
        """

    async def drop_held(self, thread_id: str) -> None:
        """Deletes the posts that are held back in the thread, which is locked: those that were never due."""

    async def has(self, thread_id: str, key: NoticeKey) -> bool:
        """Whether a notice with this key was recorded in the thread, which is locked."""


class NoticeQueue(Notices, Protocol):
    """The same, and delivering them. Each result is False where `owner` had lost the claim."""

    async def claim(
        self,
        owner: str,
        *,
        lease: float,
        limit: int,
        limits: SlackLimits = SLACK_LIMITS,
        max_reactions: int | None = None,
    ) -> Sequence[ClaimedNotice]:
        """Takes due notices: any REACTION (at most `max_reactions`), and of all others the first open one of each
        thread (the CARD, then by id; an EPHEMERAL waits for no POST, a POST for the card to be there). Of each kind as
        many as may be called now, in the order of CallKind; each counts as a call. Counts the attempt. One whose lease
        ran out while it was being sent is taken as uncertain.
        """

    async def delivered(self, notice: Notice, owner: str, *, ts: str | None) -> bool:
        """Ends a notice (a CARD or REACTION of a newer revision stays open). `ts` is the message's, if there is one."""

    async def reacted(self, notice: Notice, owner: str, progress: ReactionProgress) -> bool:
        """Records that Slack took a call for a REACTION: it ends, or is due again for the next call."""

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
        """Makes a notice due again in that many seconds. `uncertain`: it may have arrived, which counts till it is
        delivered. `without_blocks`: Slack refused it with them.
        """

    async def give_up(self, notice: Notice, owner: str, *, problem: str) -> bool:
        """Ends a notice that cannot be delivered (a newer revision is tried all the same); the reason is kept."""


class Claims(Protocol):
    """Claims of every kind."""

    async def release(self, owner: str) -> None:
        """Frees all that `owner` holds: polls as they were; notices and requests that it holds become due at once, as
        uncertain (what was not begun can be put back by `settle` and `postpone` before).
        """


@dataclass(frozen=True)
class ClaimedFile:
    """A file to upload for a request, with the thread as it was when claimed. `attempts` counts the tries, this one
    included.
    """

    request_id: str
    position: int
    file: SlackFile
    thread: Thread
    attempts: int


class RequestParts(Protocol):
    """What goes along with requests."""

    async def fetched(self, request_id: str) -> FetchedParts:
        """The parts that are kept of a request that is being prepared."""

    async def keep_fetched(self, request_id: str, parts: FetchedParts) -> None:
        """Keeps the parts that are there, till the request is in another state."""

    async def to_upload(self, request_id: str, files: Sequence[SlackFile]) -> None:
        """Has a request that waits, and is held, wait till these files are uploaded; no others any more."""

    async def claim(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedFile]:
        """Takes files that are due of requests that wait, and counts the attempt. Those of requests that do not wait
        any more are dropped; of one that was handed back they are due again with it.
        """

    async def is_claimed_by(self, claimed: ClaimedFile, owner: str) -> bool:
        """Whether `owner` still has the claim. The file is locked."""

    async def postpone(self, claimed: ClaimedFile, *, due_in: float) -> None:
        """Makes a claimed file due again in that many seconds."""

    async def fails(self, claimed: ClaimedFile) -> float:
        """Records that Slack does not give a claimed file; returns since when (on the store's clock)."""

    async def settle(self, claimed: ClaimedFile, outcome: FileOutcome) -> None:
        """Records the outcome of a claimed file."""

    async def settled(self, request_id: str) -> Sequence[SettledFile] | None:
        """All files of a request, in their order; None while one is still to be uploaded."""

    async def tried(self, request_id: str) -> None:
        """Records that sending a request began, if it had not: with its first file."""

    async def complete(self, request_id: str, context: RequestContext) -> None:
        """Has a request sent, with this: its files are settled."""
