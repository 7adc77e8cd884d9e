"""Sends follow-ups on to the job, or tells their writers why not."""

from dataclasses import replace

from bot.domain.context.message_text import beginning
from bot.domain.jobs.job import ARCHIVED
from bot.domain.requests.edits import MAX_QUOTED, not_fully_sent, offer, reaction_of, with_new_words
from bot.domain.requests.new_jobs import Written
from bot.domain.requests.request import (
    NO_WORDS,
    NOT_SENT_YET,
    Attachments,
    RejectionReason,
    Reply,
    Request,
    RequestKind,
    RequestState,
    WayIn,
)
from bot.domain.requests.settle import rejection
from bot.domain.threads.thread import Thread
from bot.notices.answers import ActionAnswer, ActionAnswered
from bot.notices.notice import NewNotice, NoticeKey, ReactionChanged
from bot.service.start import new_request, reaction_notice, request_id
from bot.store.requests import Requests
from bot.store.store import RecordingTransaction

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


async def explain(tx: RecordingTransaction, request: Request, attachments: Attachments) -> None:
    """Adds the reaction to a newly recorded reply, and reports why it is not sent, if so."""
    reaction = reaction_of(request.state)
    await tx.notices.add(request.thread_id, reaction_notice(request, reaction))
    sent = request.state in NOT_SENT_YET
    if request.problem == NO_WORDS:
        await tx.notices.add(request.thread_id, not_fully_sent(request, attachments, words_sent=False))
    elif not sent:
        await tx.notices.add(request.thread_id, rejection(request, RejectionReason(request.problem)))


async def tell_that_muted(tx: RecordingTransaction, thread: Thread, reply: Reply) -> None:
    """Tells somebody, once for each reply, that it is not sent because the job is muted."""
    about = beginning(reply.text, MAX_QUOTED)
    message = ActionAnswered(reply.person.id, ActionAnswer.REPLY_NOT_SENT_MUTED, about)
    await tx.notices.add(thread.id, NewNotice(ActionAnswered.key_of_muted(reply), message))


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
    await explain(tx, released, held.attachments)
    return sent


async def send_new_words(tx: RecordingTransaction, thread: Thread, request: Request) -> ActionAnswer:
    """Records a message's newest text as a follow-up to this job, which may have replaced the one that got the earlier
    text. Returns the answer to show.
    """
    if offer(request) is None:
        return ActionAnswer.NOTHING_NEW
    follow_up = await checked(tx, thread, replace(with_new_words(request, tx.now), thread_id=thread.id))
    if not await tx.requests.add(follow_up):
        return ActionAnswer.ALREADY_ACCEPTED
    await tx.notices.move(ReactionChanged.key(request), request.thread_id, thread.id)
    await tx.requests.save(replace(request, latest_text=None))  # later edits change the follow-up
    await explain(tx, follow_up, Attachments())
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
    if thread.state.people.muted_by:
        about = beginning(written.text, MAX_QUOTED)
        told = ActionAnswered(written.person.id, ActionAnswer.REPLY_NOT_SENT_MUTED, about)
        await tx.notices.add(thread.id, NewNotice(NoticeKey(written.source_key), told))
        return
    request = await checked(tx, thread, _written_follow_up(tx, thread, written))
    if await tx.requests.add(request) and request.state not in NOT_SENT_YET:
        await tx.notices.add(request.thread_id, rejection(request, RejectionReason(request.problem)))


def _written_follow_up(tx: RecordingTransaction, thread: Thread, written: Written) -> Request:
    person, text, way_in = written.person, written.text, written.way_in
    request = new_request(thread, RequestKind.FOLLOW_UP, written.source_key, person, text, way_in=way_in)
    return replace(request, written_at=f"{tx.now:.6f}", recorded_at=tx.now)
