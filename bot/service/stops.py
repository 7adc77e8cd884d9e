"""Stops of jobs that were not sent yet. Each function is part of a transaction in which the thread is locked."""

from dataclasses import replace

from bot.domain.jobs.job import Problem
from bot.domain.notices import keys
from bot.domain.notices.messages import ActionAnswer, ActionAnswered, NewNotice
from bot.domain.notices.posts import RequestRejected
from bot.domain.requests.audit import AuditAction
from bot.domain.requests.request import RejectionReason, Request, RequestState
from bot.domain.requests.settle import summary
from bot.domain.threads.thread import Thread
from bot.service.action_terms import NOT_SENT, ActionTransaction
from bot.service.audit_trail import note
from bot.service.following_jobs import keep_followed
from bot.service.start_endings import StartEnding, end_start


async def stop_unsent(tx: ActionTransaction, thread: Thread, stop: Request) -> bool:
    """Ends a job that was not sent yet, for a stop, and tells that. False where there is something to stop at the job
    API, or may be.
    """
    start = await tx.requests.find_start(thread.id)
    if start is None or thread.state.job is not None or start.state in {RequestState.SENDING, RequestState.ACCEPTED}:
        return False
    if start.uncertain and start.state is RequestState.WAITING:
        return False  # it may have arrived, and goes out again: the stop comes after it
    await tx.requests.prepared(replace(stop, state=RequestState.ACCEPTED))
    answer = ActionAnswer.STOP_UNCERTAIN if start.state is RequestState.UNCERTAIN else ActionAnswer.NOTHING_TO_STOP
    if start.state in NOT_SENT:
        answer = ActionAnswer.STOPPED_UNSENT
        await keep_followed(tx, thread)
        has_card = await end_start(tx, thread, start, StartEnding(Problem.STOPPED, RejectionReason.STOPPED))
        if has_card or start.person_id != stop.person_id:  # without a card, it is told to who asked, privately
            stopped = RequestRejected(summary(start), RejectionReason.STOPPED, stopped_by=stop.person_id)
            await tx.notices.add(thread.id, NewNotice(keys.request_rejected(start), stopped))
        await note(tx, AuditAction.STOPPED, stop, thread)
    told = ActionAnswered(stop.person_id, answer)
    await tx.notices.add(thread.id, NewNotice(keys.action_answered(stop.source_key), told))
    return True
