"""Follow-ups: sends them on to the job or tells their writers why not, and holds those whose person has to answer
first. The thread is locked.
"""

from dataclasses import replace

from bot.domain.jobs.job import ARCHIVED
from bot.domain.jobs.stopping import was_stopped_after
from bot.domain.messages import beginning
from bot.domain.requests import edits
from bot.domain.requests.held import question_about, to_ask_about
from bot.domain.requests.new_jobs import Written, new_request, request_id, source_key_of
from bot.domain.requests.request import (
    NO_WORDS,
    NOT_SENT_YET,
    HeldBecause,
    RejectionReason,
    Reply,
    Request,
    RequestKind,
    RequestState,
    Surface,
    WayIn,
)
from bot.domain.requests.settle import rejection
from bot.domain.threads.thread import Thread
from bot.jobapi.models import Mode
from bot.notices.answers import ActionAnswer, ActionAnswered
from bot.notices.notice import NewNotice, NoticeKey, ReactionChanged
from bot.notices.questions import HeldQuestion
from bot.store.requests import Requests
from bot.store.store import RecordingTransaction

MOST_ASKED = 5
"""How many of the newest replies one question covers."""
REMINDED_AFTER = 3_600.0
"""Seconds after which an unanswered question comes once more, as a direct message: the first is seen only by people who
are online.
"""


async def hold(
    tx: RecordingTransaction, request: Request, because: HeldBecause | None = None, *, known: bool = False
) -> None:
    """Records a request that waits for its person's answer, or lets a `known` one wait, and asks for it. One recorded
    before is asked about unless it was already.
    """
    held = replace(request, state=RequestState.AWAITING_PERSON, problem=because or "")
    await (tx.requests.save(held) if known else tx.requests.add(held))
    await ask(tx, held)


async def ask(tx: RecordingTransaction, held: Request) -> None:
    """Asks the person of a request that waits for them, and reminds them."""
    question = question_about(held)
    reminder = replace(question, asked_on=Surface.HOME)
    await tx.notices.add(held.thread_id, NewNotice(HeldQuestion.key(held), question))
    await tx.notices.add(held.thread_id, NewNotice(HeldQuestion.reminder_key(held), reminder, REMINDED_AFTER))


async def ask_again(tx: RecordingTransaction, thread: Thread, action: Request) -> None:
    """Asks again about held replies when their writer asks for the job's status: the first question, which only they
    see, may be lost.
    """
    for held in to_ask_about(await tx.requests.held(thread.id, action.person_id))[-MOST_ASKED:]:
        await tx.notices.add(thread.id, NewNotice(HeldQuestion.key_for(held, action), question_about(held)))


SETTLING = 1.0
"""Seconds that a follow-up waits before it is sent, so that an earlier one that Slack delivers late still precedes it.
"""


async def obstacle(requests: Requests, thread: Thread) -> RejectionReason | None:
    """Returns why a follow-up can no longer be sent; None if it can."""
    state = thread.state
    if state.job is not None and thread.ts is None:  # its card could not be posted
        return RejectionReason.NOT_STARTED
    if state.job is not None:
        return RejectionReason.ARCHIVED if state.job.status == ARCHIVED else None
    start = await requests.find_start(thread.id)
    if start is None or start.state in {RequestState.REJECTED, RequestState.WITHDRAWN}:
        return RejectionReason.NOT_STARTED
    return None


async def checked(tx: RecordingTransaction, thread: Thread, request: Request) -> Request:
    """Returns a new request, rejected if there is a reason."""
    problem = await obstacle(tx.requests, thread) or ("" if request.text or request.attachments else NO_WORDS)
    return replace(request, state=RequestState.REJECTED, problem=problem) if problem else request


async def was_stopped_since(tx: RecordingTransaction, press: Request) -> bool:
    """Returns whether the job was stopped after a press."""
    return was_stopped_after(press.asked_at, await tx.requests.stops(press.thread_id), recorded_at=press.recorded_at)


async def explain(tx: RecordingTransaction, request: Request) -> None:
    """Adds the reaction to a newly recorded reply, and reports why it is not sent, if so."""
    await tx.notices.add(request.thread_id, edits.reaction_notice(request, edits.reaction_of(request.state)))
    if request.problem == NO_WORDS:
        await tx.notices.add(request.thread_id, edits.not_fully_sent(request, request.attachments, words_sent=False))
    elif request.state not in NOT_SENT_YET:
        await tx.notices.add(request.thread_id, rejection(request, RejectionReason(request.problem)))


async def tell_not_sent(
    tx: RecordingTransaction, thread: Thread, said: Reply | Written, why: ActionAnswer, key: NoticeKey
) -> None:
    """Tells somebody why what they said is not sent."""
    message = ActionAnswered(said.person.id, why, beginning(said.text, edits.MAX_QUOTED))
    await tx.notices.add(thread.id, NewNotice(key, message))


def follow_up_of(tx: RecordingTransaction, thread: Thread, reply: Reply, way_in: WayIn) -> Request:
    """Returns the follow-up that a message is."""
    request = new_request(thread, RequestKind.FOLLOW_UP, source_key_of(reply), reply.person, reply.text, way_in=way_in)
    request = replace(request, written_at=reply.message_ts, recorded_at=tx.now, edited_at=reply.edited_at)
    return replace(request, attachments=reply.attachments)


async def release(tx: RecordingTransaction, job: Thread, held: Request) -> bool:
    """Passes a held reply on to the agent of a job, which may have replaced the one that it was written for. False, and
    its person is told, if that is not possible.
    """
    released = replace(held, state=RequestState.RECEIVED, problem="", recorded_at=tx.now)
    released = await checked(tx, job, released)
    await tx.requests.save(released)
    sent = released.state in NOT_SENT_YET
    if sent and job.id != held.thread_id:
        await tx.requests.move([released], job.id)
        released = replace(released, thread_id=job.id)
    await explain(tx, released)
    return sent


async def send_new_words(tx: RecordingTransaction, thread: Thread, request: Request) -> ActionAnswer:
    """Records a message's newest text as a follow-up to this job, which may have replaced the one that got the earlier
    text. Returns the answer to show.
    """
    if edits.offer(request) is None:
        return ActionAnswer.NOTHING_NEW
    follow_up = await checked(tx, thread, replace(edits.with_new_words(request, tx.now), thread_id=thread.id))
    if not await tx.requests.add(follow_up):
        return ActionAnswer.ALREADY_ACCEPTED
    await tx.notices.move(ReactionChanged.key(request), request.thread_id, thread.id)
    await tx.requests.save(replace(request, latest_text=None))  # later edits change the follow-up
    await explain(tx, follow_up)
    waits = follow_up.state in NOT_SENT_YET
    return ActionAnswer.NEW_WORDS_SENT if waits else ActionAnswer.SEE_THREAD


async def record_written(tx: RecordingTransaction, thread: Thread, written: Written) -> None:
    """Records, once, a follow-up that is not a message of its thread and so has no reaction.

    Pressing its button again shows the result of the first time.
    """
    first = await tx.requests.get(request_id(written.source_key))
    if first is not None:
        if written.way_in is WayIn.BUTTON:
            rejected = first.state is RequestState.REJECTED
            again = ActionAnswer.SEE_THREAD if rejected else ActionAnswer.ALREADY_ACCEPTED
            answer = ActionAnswered(written.person.id, again)
            await tx.notices.add(first.thread_id, NewNotice(NoticeKey(written.source_key), answer))
        return
    if written.mode is not None and (why := await _why_no_change(tx, thread, written)) is not None:
        refused = ActionAnswered(written.person.id, why)
        await tx.notices.add(thread.id, NewNotice(NoticeKey(written.source_key), refused))
        return
    if thread.state.people.muted_by:
        why, key = ActionAnswer.REPLY_NOT_SENT_MUTED, NoticeKey(written.source_key)
        await tell_not_sent(tx, thread, written, why, key)
        return
    person, text, way_in = written.person, written.text, written.way_in
    request = new_request(thread, RequestKind.FOLLOW_UP, written.source_key, person, text, way_in=way_in)
    request = replace(request, written_at=f"{tx.now:.6f}", recorded_at=tx.now, mode=written.mode)
    request = await checked(tx, thread, request)
    if await tx.requests.add(request) and request.state not in NOT_SENT_YET:
        await tx.notices.add(request.thread_id, rejection(request, RejectionReason(request.problem)))


async def _why_no_change(tx: RecordingTransaction, thread: Thread, written: Written) -> ActionAnswer | None:
    """Returns why an answer is not made a change: it is one already, or what it belongs to was ended."""
    open_states = NOT_SENT_YET | {RequestState.SENDING}
    stopping = any(stop.state in open_states for stop in await tx.requests.stops(thread.id))
    if stopping or thread.state.people.stopped_by or thread.id != written.thread_id:
        return ActionAnswer.CHANGE_TOO_LATE
    already = thread.mode is Mode.EDIT or await tx.requests.turns_to(thread.id, Mode.EDIT)
    return ActionAnswer.ALREADY_ACCEPTED if already else None
