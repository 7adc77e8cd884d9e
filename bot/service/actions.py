"""Carries out actions on a job (a button, a word, a reaction) after the permission check."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bot.domain.jobs.job import Problem
from bot.domain.messages import beginning
from bot.domain.permissions import ABOUT_REPLIES
from bot.domain.requests.audit import AuditAction, audited
from bot.domain.requests.edits import MAX_QUOTED, for_another_job, reaction_notice, with_new_words
from bot.domain.requests.held import lines_with
from bot.domain.requests.new_jobs import new_request, once_more
from bot.domain.requests.request import (
    NOT_SENT_YET,
    HeldBecause,
    RejectionReason,
    Request,
    RequestKind,
    RequestState,
    WayIn,
)
from bot.domain.threads.thread import Thread, can_be_retried
from bot.notices.answers import (
    ActionAnswer,
    AnswerRequested,
    JobIdRequested,
    PromptRequested,
    StatusRequested,
    answered,
)
from bot.notices.notice import CARD_CHANGED, NewNotice, NoticeKey, Reaction, ReactionChanged, ToPerson
from bot.service import following_jobs, proposals
from bot.service.direct_messages import add_to_job, begin_job, job_of_line
from bot.service.follow_up import ask, ask_again, checked, explain, obstacle, release, send_new_words, was_stopped_since
from bot.service.following_jobs import ActionTerms
from bot.service.reply import catch_up
from bot.service.start import record_start
from bot.store.store import RequestTransaction

_AUDITED: Mapping[ActionAnswer, AuditAction] = {
    ActionAnswer.MUTED: AuditAction.MUTED,
    ActionAnswer.UNMUTED: AuditAction.UNMUTED,
    ActionAnswer.STOPPED_UNSENT: AuditAction.STOPPED,
    ActionAnswer.SENT_AGAIN: AuditAction.RETRIED,
    ActionAnswer.STARTED_AGAIN: AuditAction.RETRIED,
    ActionAnswer.PROJECT_CHOSEN: AuditAction.PROJECT_CHOSEN,
    ActionAnswer.PROJECT_SWITCHED: AuditAction.PROJECT_CHOSEN,
    ActionAnswer.NEW_WORDS_SENT: AuditAction.STEERED,
}
"""The answers that the audit trail records. A held reply that is sent is recorded when it is sent, like any other."""
_SENDING = frozenset(
    {RequestKind.SEND_AGAIN, RequestKind.SEND_NEW_WORDS, RequestKind.SEND_HELD, RequestKind.SEND_ALL_HELD}
)
"""Presses that have something sent that was written before."""
_PROMPTS = frozenset({RequestKind.START, RequestKind.FOLLOW_UP})
"""Requests that make an agent work, so that a job which was replaced must not get them."""


async def writer_of(tx: RequestTransaction, action: Request) -> str:
    """Returns the writer of the reply that an action is about; empty if there is none."""
    reply = await _reply_of(tx, action)
    return reply.person_id if reply else ""


async def _reply_of(tx: RequestTransaction, action: Request) -> Request | None:
    reply = await tx.requests.get(action.text) if action.kind in ABOUT_REPLIES else None
    return None if reply is None or reply.thread_id != action.thread_id else reply


async def carry_out(tx: RequestTransaction, thread: Thread, action: Request, terms: ActionTerms) -> None:
    """Carries out an action, answers it, and ends it."""
    if (shown := _shown(thread, action)) is not None:
        await tx.notices.add(thread.id, NewNotice(NoticeKey(action.source_key), shown))
        if action.kind is RequestKind.SHOW_STATUS:
            await ask_again(tx, thread, action)
    elif (answer := await _answer(tx, thread, action, terms)) is not None:
        reply = await _reply_of(tx, action)
        about = beginning(reply.text, MAX_QUOTED) if reply else ""
        await tx.notices.add(thread.id, answered(action, answer, about))
        if answer in _AUDITED:
            await tx.audit.add(audited(_AUDITED[answer], action, thread))
    await tx.requests.prepared(replace(action, state=RequestState.ACCEPTED))


def _shown(thread: Thread, action: Request) -> ToPerson | None:
    """Returns the message to show, if the action only asks to see something."""
    match action.kind:
        case RequestKind.SHOW_STATUS:
            return StatusRequested(action.person_id)
        case RequestKind.SHOW_PROMPT:
            return PromptRequested(action.person_id, thread.prompt)
        case RequestKind.SHOW_ANSWER:
            return AnswerRequested(action.person_id, action.text)
        case RequestKind.SHOW_JOB_ID:
            return JobIdRequested(action.person_id)
        case _:
            return None


async def _answer(tx: RequestTransaction, thread: Thread, action: Request, terms: ActionTerms) -> ActionAnswer | None:
    if action.kind in _SENDING and await was_stopped_since(tx, action):
        return ActionAnswer.STOPPED_SINCE
    answer: ActionAnswer | None = None
    match action.kind:
        case RequestKind.SEND_AGAIN:
            answer = await _send_again(tx, thread, await tx.requests.get(action.text))
        case RequestKind.SEND_NEW_WORDS:
            answer = await _send_new_words(tx, thread, action)
        case RequestKind.MUTE | RequestKind.UNMUTE:
            answer = await _mute(tx, thread, action.person_id if action.kind is RequestKind.MUTE else "", terms)
        case RequestKind.RETRY:
            answer = await _retry(tx, thread, action)
        case RequestKind.SEND_HELD | RequestKind.SEND_ALL_HELD | RequestKind.DISCARD_HELD:
            answer = await _held(tx, thread, action, terms)
        case RequestKind.CHOOSE_PROJECT:
            answer = await following_jobs.choose_project(tx, thread, action, terms)
        case RequestKind.DROP_PROPOSAL:
            await proposals.drop(tx, thread, action)
    return answer


async def _send_again(tx: RequestTransaction, thread: Thread, request: Request | None) -> ActionAnswer:
    if request is not None and request.merged_into:
        request = await tx.requests.get(request.merged_into)
    if request is None or request.thread_id != thread.id:
        return ActionAnswer.ALREADY_ACCEPTED
    handed_back = request.state is RequestState.UNCERTAIN or request.problem == RejectionReason.HANDED_BACK
    if request.state not in {RequestState.UNCERTAIN, RequestState.REJECTED} or not handed_back:
        return ActionAnswer.ALREADY_ACCEPTED
    if request.latest_text == "":
        with_others = await tx.requests.merged_into(request)
        return ActionAnswer.FIRST_WITHDRAWN if with_others else ActionAnswer.WITHDRAWN
    if not thread.state.replaced_by or request.kind not in _PROMPTS:
        await _wait_again(tx, thread, request)
        return ActionAnswer.SENT_AGAIN
    if request.kind is RequestKind.START:
        return ActionAnswer.ALREADY_ACCEPTED  # as the job that replaced it
    return await _send_to_replacement(tx, await following_jobs.alive(tx.threads, thread), request)


async def _send_to_replacement(tx: RequestTransaction, job: Thread, request: Request) -> ActionAnswer:
    """Sends a follow-up, and those merged with it, to the job that replaced theirs, once."""
    answer = ActionAnswer.ALREADY_ACCEPTED
    for each in (request, *await tx.requests.merged_into(request)):
        again = await checked(tx, job, for_another_job(each, job.id, tx.now))
        if each.latest_text != "" and await tx.requests.add(again):
            await tx.notices.move(ReactionChanged.key(each), each.thread_id, job.id)
            await tx.requests.save(replace(each, latest_text=None))  # later edits change the new one
            await explain(tx, again)
            answer = ActionAnswer.SENT_AGAIN if again.state in NOT_SENT_YET else ActionAnswer.SEE_THREAD
    return answer


async def _wait_again(tx: RequestTransaction, thread: Thread, request: Request) -> None:
    await tx.requests.settle(request.id, RequestState.WAITING, afresh=True)
    await catch_up(tx, replace(request, state=RequestState.WAITING))
    if request.kind is not RequestKind.START:
        if request.message_ts:
            noted = reaction_notice(request, Reaction.RECORDED)
            await tx.notices.add(thread.id, noted)
        return
    await tx.threads.save_state(thread.id, thread.state.with_problem(None), poll_in=None)
    await tx.notices.add(thread.id, CARD_CHANGED)


async def _send_new_words(tx: RequestTransaction, thread: Thread, action: Request) -> ActionAnswer | None:
    request = await tx.requests.get(action.text)
    if request is None:
        return ActionAnswer.NOTHING_NEW
    answer = await send_new_words(tx, await following_jobs.alive(tx.threads, thread), request)
    if answer is ActionAnswer.NEW_WORDS_SENT:
        await tx.limits.count(action.person_id, with_new_words(request, tx.now).id)
    return answer


async def _mute(tx: RequestTransaction, thread: Thread, muted_by: str, terms: ActionTerms) -> ActionAnswer:
    if not (muted_by or thread.state.people.muted_by):
        return ActionAnswer.NOT_MUTED
    state = replace(thread.state, people=replace(thread.state.people, muted_by=muted_by))
    if muted_by:
        await following_jobs.keep_polling(tx, thread, state, terms)
        await tx.notices.drop_held(thread.id)
    else:  # a poll shows what was not told
        await tx.threads.save_state(thread.id, state, poll_in=0.0)
    await tx.notices.add(thread.id, CARD_CHANGED)
    return ActionAnswer.MUTED if muted_by else ActionAnswer.UNMUTED


async def _retry(tx: RequestTransaction, thread: Thread, action: Request) -> ActionAnswer | None:
    """Retries: a start that may have arrived is sent again; a job that ended badly is started again as a new one."""
    start = await tx.requests.find_start(thread.id)
    if start is None:
        return ActionAnswer.NOT_TO_BE_RETRIED
    if start.state is RequestState.UNCERTAIN or start.problem == RejectionReason.HANDED_BACK:
        return await _send_again(tx, thread, start)
    if not can_be_retried(thread):
        return ActionAnswer.NOT_TO_BE_RETRIED
    await record_start(tx, once_more(thread, start, action))
    return None


async def _held(tx: RequestTransaction, thread: Thread, action: Request, terms: ActionTerms) -> ActionAnswer | None:
    """Handles a held request according to its person's answer."""
    asked_about = await tx.requests.get(action.text)
    if asked_about is not None and asked_about.kind is not RequestKind.FOLLOW_UP:
        late = asked_about.held_because is HeldBecause.LATE
        return await _do_late(tx, thread, asked_about, action) if late else ActionAnswer.NOTHING_NEW
    waiting = await tx.requests.held(thread.id, action.person_id)
    held = next((request for request in waiting if request.id == action.text), None)
    if asked_about is not None and asked_about.may_be_job and action.kind is not RequestKind.SEND_ALL_HELD:
        lines = await _on_its_side_of_stops(tx, asked_about, lines_with(asked_about, waiting))
        return await _direct_message(tx, thread, action, lines)
    if action.kind is RequestKind.DISCARD_HELD:
        return await _discard(tx, held)
    job = await following_jobs.alive(tx.threads, thread)
    if action.kind is RequestKind.SEND_HELD:
        if held is None:
            return ActionAnswer.NOTHING_NEW
        return ActionAnswer.HELD_SENT if await release(tx, job, held) else ActionAnswer.SEE_THREAD
    await following_jobs.note_steering(tx, thread, action.person_id, terms, for_good=True)
    replies = [each for each in waiting if not each.may_be_job and (each == held or each.held_because is None)]
    released = [await release(tx, job, request) for request in replies]
    return ActionAnswer.HELD_ALL_SENT if all(released) else ActionAnswer.SEE_THREAD


async def _do_late(tx: RequestTransaction, job: Thread, late: Request, press: Request) -> ActionAnswer | None:
    """Does, or leaves undone, what was asked for while Pagehand was away: as if the press had asked for it."""
    if press.kind is RequestKind.DISCARD_HELD:
        if late.kind is RequestKind.START:
            await following_jobs.keep_followed(tx, job)
            await following_jobs.end_start(tx, job, late, Problem.WITHDRAWN)
        await tx.requests.save(replace(late, state=RequestState.WITHDRAWN))
        return ActionAnswer.LEFT_UNDONE
    if late.kind is RequestKind.START:
        await tx.threads.save_state(job.id, job.state.with_problem(None), poll_in=None)
        await tx.requests.save(replace(late, state=RequestState.RECEIVED, problem="", recorded_at=tx.now))
        return None
    await tx.requests.save(replace(late, state=RequestState.WITHDRAWN))
    now = new_request(job, late.kind, f"{press.source_key}/now", press.person, late.text, way_in=WayIn.BUTTON)
    await tx.requests.add(replace(now, written_at=press.asked_at, recorded_at=tx.now))
    return None


async def _on_its_side_of_stops(
    tx: RequestTransaction, asked_about: Request, lines: Sequence[Request]
) -> Sequence[Request]:
    """Returns the lines without those that arrived late and were written before a stop that came before the one that
    was asked about: a stop withdraws what was written before it, so they are asked about by themselves.
    """
    stops = [stop.written_at for stop in await tx.requests.stops(asked_about.thread_id)]
    apart = [line for line in lines if any(line.written_at < stop < asked_about.written_at for stop in stops)]
    for line in apart:
        await ask(tx, line)
    return [line for line in lines if line not in apart]


async def _direct_message(
    tx: RequestTransaction, thread: Thread, action: Request, lines: Sequence[Request]
) -> ActionAnswer | None:
    """Turns lines of a direct message into a job, or into follow-ups of the job above; if that job takes none, they
    keep waiting.
    """
    if not lines:
        return ActionAnswer.NOTHING_NEW
    if action.kind is RequestKind.DISCARD_HELD:
        await begin_job(tx, thread, lines[0], job_of_line(thread, lines[0]))
        return None
    job = await following_jobs.alive(tx.threads, thread)
    if job.state.people.muted_by:
        return ActionAnswer.NOT_ADDED_MUTED
    if await obstacle(tx.requests, job) is not None:
        return ActionAnswer.NOT_ADDED
    await add_to_job(tx, job, lines)
    return ActionAnswer.HELD_SENT


async def _discard(tx: RequestTransaction, held: Request | None) -> ActionAnswer:
    if held is None:
        return ActionAnswer.NOTHING_NEW
    await tx.requests.save(replace(held, state=RequestState.WITHDRAWN))
    return ActionAnswer.HELD_DISCARDED
