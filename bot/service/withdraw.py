"""A stop withdraws what was written before it and certainly was not sent. Each writer is asked whether to send it
anyway. The thread is locked.
"""

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.people.permissions import is_outsider
from bot.domain.requests.edits import certainly_unsent
from bot.domain.requests.held import is_withdrawn_by, was_stopped_after
from bot.domain.requests.request import NOT_SENT_YET, HeldBecause, Request, RequestKind, RequestState
from bot.domain.threads.thread import Thread
from bot.notices.notice import CARD_CHANGED
from bot.service.held import hold_again
from bot.service.start import reaction_notice
from bot.store.store import RecordingTransaction, RequestTransaction


async def withdraw_unsent(tx: RecordingTransaction, thread: Thread, stop: Request) -> bool:
    """Withdraws what was written for a job before a stop. False if there was nothing."""
    unsent = await tx.requests.unsent(thread.id)
    for other in unsent:
        if other.kind is RequestKind.STOP and other.held_because is HeldBecause.LATE:
            await tx.requests.save(replace(other, state=RequestState.WITHDRAWN))  # it is done
    return await _withdraw(tx, thread, [each for each in unsent if is_withdrawn_by(each, stop)])


async def withdraw_if_stopped(tx: RequestTransaction, thread_id: str, ids: Sequence[str]) -> None:
    """Withdraws follow-ups that were not sent after all if the job was stopped meanwhile."""
    thread, stops = await tx.threads.get(thread_id), await tx.requests.stops(thread_id)
    if thread is None or not stops:
        return
    came_back = [request for each in ids if (request := await tx.requests.get(each)) is not None]
    waiting = [each for each in came_back if each.state in NOT_SENT_YET and certainly_unsent(each)]
    await _withdraw(tx, thread, [each for each in waiting if _is_overtaken(each, stops)])


async def was_stopped_since(tx: RecordingTransaction, press: Request) -> bool:
    """Returns whether the job was stopped after a press."""
    return was_stopped_after(press.asked_at, await tx.requests.stops(press.thread_id), recorded_at=press.recorded_at)


def _is_overtaken(request: Request, stops: Sequence[Request]) -> bool:
    kind = request.kind is RequestKind.FOLLOW_UP
    return kind and was_stopped_after(request.asked_at, stops, recorded_at=request.recorded_at)


async def _withdraw(tx: RecordingTransaction, thread: Thread, requests: Sequence[Request]) -> bool:
    asked = [each for each in requests if not is_outsider(each.person, thread)]  # others' will be refused
    for request in asked:
        await hold_again(tx, request, HeldBecause.STOPPED)
        if request.message_ts:
            await tx.notices.add(request.thread_id, reaction_notice(request, None))
    if asked and thread.card_ts is not None:
        await tx.notices.add(thread.id, CARD_CHANGED)  # it counts waiting follow-ups
    return bool(asked)
