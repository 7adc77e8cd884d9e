"""Records what became of a request, of all that went out with it, and of what waited for it."""

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.notices.messages import CARD_CHANGED
from bot.domain.requests.request import Request, RequestKind, RequestState
from bot.domain.requests.settle import Settlement
from bot.domain.threads.thread import Thread, ThreadState
from bot.scheduler.request_claims import SenderTransaction
from bot.service.replies import catch_up
from bot.service.start_endings import reaction_notice, refuse_follow_ups


async def show_state(tx: SenderTransaction, thread: Thread, state: ThreadState, *, poll_in: float | None) -> None:
    """Saves what is known, if it is news, and has the card show it."""
    if state == thread.state:
        return
    await tx.threads.save_state(thread.id, state, poll_in=poll_in)
    await tx.notices.add(thread.id, CARD_CHANGED)


async def record_result(
    tx: SenderTransaction, thread: Thread, requests: Sequence[Request], settlement: Settlement
) -> None:
    """Has each of the requests that went out as one message become what the first did, and tells it."""
    await _settle_each(tx, requests, settlement)
    await show_state(tx, thread, settlement.state, poll_in=settlement.poll_in)
    if requests[0].kind is RequestKind.FOLLOW_UP:
        await tx.notices.add(thread.id, CARD_CHANGED)  # it counts them
    for notice in settlement.notices:
        await tx.notices.add(thread.id, notice)
    state, problem = settlement.request_state, settlement.problem
    for request in requests:
        uncertain = request.uncertain or settlement.uncertain
        await catch_up(tx, replace(request, state=state, problem=problem, uncertain=uncertain))
    if requests[0].kind is RequestKind.START and state is RequestState.REJECTED:
        await refuse_follow_ups(tx, thread.id)


async def _settle_each(tx: SenderTransaction, requests: Sequence[Request], settlement: Settlement) -> None:
    certainly_unsent = settlement.request_state is RequestState.WAITING and not (
        requests[0].uncertain or settlement.uncertain
    )
    if certainly_unsent:
        await tx.requests.unmerge(requests[0].id)
    for request in requests:
        await tx.requests.settle(
            request.id,
            settlement.request_state,
            problem=settlement.problem,
            due_in=settlement.due_in,
            uncertain=settlement.uncertain,
        )
        if settlement.reaction is not None and request.written_at:
            await tx.notices.add(request.thread_id, reaction_notice(request, settlement.reaction))


async def give_back(tx: SenderTransaction, request: Request, others: Sequence[Request]) -> None:
    """Has requests wait again that were claimed, and not sent since. What was never sent can be edited, and goes out
    with whatever waits then; what may have been sent earlier stays one message.
    """
    if not request.uncertain:
        await tx.requests.unmerge(request.id)
    for each in (request, *others):
        await tx.requests.settle(each.id, RequestState.WAITING)
        await catch_up(tx, replace(each, state=RequestState.WAITING))
