"""Stops a job: before it is sent, or by a request to the job API; and withdraws what was written before the stop and
certainly was not sent. The thread is locked.
"""

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.jobs.job import Problem
from bot.domain.jobs.stopping import is_at_work, is_withdrawn_by, was_stopped_after
from bot.domain.permissions import is_outsider
from bot.domain.requests.audit import AuditAction, audited
from bot.domain.requests.edits import certainly_unsent, reaction_notice
from bot.domain.requests.request import NOT_SENT_YET, HeldBecause, RejectionReason, Request, RequestKind, RequestState
from bot.domain.requests.settle import summary
from bot.domain.threads.thread import ProposalEnd, Thread
from bot.notices.answers import ActionAnswer, answered
from bot.notices.notice import CARD_CHANGED, NewNotice
from bot.notices.requests import RequestRejected
from bot.service import proposals
from bot.service.follow_up import hold
from bot.service.following_jobs import NOT_SENT, end_start, keep_followed
from bot.store.store import RecordingTransaction, RequestTransaction


async def stop_job(tx: RequestTransaction, thread: Thread, stop: Request) -> None:
    """Withdraws what was written before a stop, and releases the stop to be sent unless nothing is left to stop."""
    withdrawn = await _withdraw_unsent(tx, thread, stop)
    if await _stop_unsent(tx, thread, stop):
        return
    planned = await proposals.end(tx, thread, ProposalEnd.STOPPED, stop.person_id)
    done = (withdrawn or planned) and thread.state.job is not None and not is_at_work(thread.state, tx.now)
    if done:
        answer = ActionAnswer.PLAN_STOPPED if planned else ActionAnswer.WAITING_STOPPED
        await tx.notices.add(thread.id, answered(stop, answer))
    await tx.requests.prepared(replace(stop, state=RequestState.ACCEPTED if done else RequestState.WAITING))
    await tx.audit.add(audited(AuditAction.STOPPED, stop, thread))


async def _withdraw_unsent(tx: RecordingTransaction, thread: Thread, stop: Request) -> bool:
    """Withdraws what was written for a job before a stop. False if there was nothing."""
    unsent = await tx.requests.unsent(thread.id)
    for other in unsent:
        if other.kind is RequestKind.STOP and other.held_because is HeldBecause.LATE:
            await tx.requests.save(replace(other, state=RequestState.WITHDRAWN))  # it is done
    return await _withdraw(tx, thread, [each for each in unsent if is_withdrawn_by(each, stop)])


async def _stop_unsent(tx: RequestTransaction, thread: Thread, stop: Request) -> bool:
    """Stops a job that has not been sent yet, and reports it. False if there is, or may be, something to stop at the
    job API.
    """
    start = await tx.requests.find_start(thread.id)
    if start is None or thread.state.job is not None or start.state in {RequestState.SENDING, RequestState.ACCEPTED}:
        return False
    if start.uncertain and start.state is RequestState.WAITING:
        return False  # it may have arrived, and is sent again; the stop follows
    await tx.requests.prepared(replace(stop, state=RequestState.ACCEPTED))
    answer = ActionAnswer.STOP_UNCERTAIN if start.state is RequestState.UNCERTAIN else ActionAnswer.NOTHING_TO_STOP
    if start.state in NOT_SENT:
        answer = ActionAnswer.STOPPED_UNSENT
        await keep_followed(tx, thread)
        has_card = await end_start(tx, thread, start, Problem.STOPPED, RejectionReason.STOPPED)
        if has_card or start.person_id != stop.person_id:  # without a card, the requester gets a private answer
            stopped = RequestRejected(summary(start), RejectionReason.STOPPED, stopped_by=stop.person_id)
            await tx.notices.add(thread.id, NewNotice(RequestRejected.key(start), stopped))
        await tx.audit.add(audited(AuditAction.STOPPED, stop, thread))
    await tx.notices.add(thread.id, answered(stop, answer))
    return True


async def withdraw_if_stopped(tx: RequestTransaction, thread_id: str, ids: Sequence[str]) -> None:
    """Withdraws follow-ups that were not sent after all if the job was stopped meanwhile."""
    thread, stops = await tx.threads.get(thread_id), await tx.requests.stops(thread_id)
    if thread is None or not stops:
        return
    came_back = [request for each in ids if (request := await tx.requests.get(each)) is not None]
    waiting = [each for each in came_back if each.state in NOT_SENT_YET and certainly_unsent(each)]
    overtaken = [each for each in waiting if was_stopped_after(each.asked_at, stops, recorded_at=each.recorded_at)]
    await _withdraw(tx, thread, [each for each in overtaken if each.kind is RequestKind.FOLLOW_UP])


async def _withdraw(tx: RecordingTransaction, thread: Thread, requests: Sequence[Request]) -> bool:
    asked = [each for each in requests if not is_outsider(each.person, thread)]  # others' will be refused
    for request in asked:
        await hold(tx, request, HeldBecause.STOPPED, known=True)
        if request.message_ts:
            await tx.notices.add(request.thread_id, reaction_notice(request, None))
    if asked and thread.card_ts is not None:
        await tx.notices.add(thread.id, CARD_CHANGED)  # it counts waiting follow-ups
    return bool(asked)
