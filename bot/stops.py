"""Stops of jobs that were not sent yet. Each function is part of a transaction in which the thread is locked."""

from dataclasses import replace

from bot.actions import NOT_SENT, ActionTransaction
from bot.audit_trail import note
from bot.domain.audit import AuditAction
from bot.domain.jobs import Problem
from bot.domain.notices import keys
from bot.domain.notices.messages import CARD_CHANGED, ActionAnswer, ActionAnswered, NewNotice
from bot.domain.observe import with_problem
from bot.domain.requests import RejectionReason, Request, RequestState
from bot.domain.settle import rejection
from bot.domain.threads import Thread
from bot.replies import refuse_follow_ups


async def stop_unsent(tx: ActionTransaction, thread: Thread, stop: Request) -> bool:
    """Ends a job that was not sent yet, for a stop, and tells that. False where there is something to stop at the job
    API, or may be.
    """
    start = await tx.requests.find_start(thread.id)
    if start is None or thread.state.job is not None or start.state in {RequestState.SENDING, RequestState.ACCEPTED}:
        return False
    answer = ActionAnswer.STOP_UNCERTAIN if start.state is RequestState.UNCERTAIN else ActionAnswer.NOTHING_TO_STOP
    if start.state in NOT_SENT and not start.uncertain:
        answer = ActionAnswer.STOPPED_UNSENT
        await _end_start(tx, thread, start)
        await note(tx, AuditAction.STOPPED, stop, thread)
    told = ActionAnswered(stop.person_id, answer)
    await tx.notices.add(thread.id, NewNotice(keys.action_answered(stop.source_key), told))
    await tx.requests.prepared(replace(stop, state=RequestState.ACCEPTED))
    return True


async def _end_start(tx: ActionTransaction, thread: Thread, start: Request) -> None:
    await tx.requests.settle(start.id, RequestState.REJECTED, problem=RejectionReason.STOPPED)
    await tx.threads.save_state(thread.id, with_problem(thread.state, Problem.STOPPED), poll_in=None)
    if thread.card_ts is not None or start.state in {RequestState.WAITING, RequestState.AWAITING_PERSON}:
        await tx.notices.add(thread.id, CARD_CHANGED)
        await tx.notices.add(thread.id, rejection(start, RejectionReason.STOPPED))
    else:
        await tx.threads.detach(thread.id)  # it has no card, and gets none
    await refuse_follow_ups(tx, thread.id)
