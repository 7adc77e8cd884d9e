"""Records what becomes of a request when its answer is known, and of one that was claimed and not sent. The thread is
locked.
"""

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.jobs import proposals
from bot.domain.requests.edits import reaction_notice
from bot.domain.requests.request import Request, RequestKind, RequestState
from bot.domain.requests.settle import Settlement
from bot.domain.threads.thread import Thread, ThreadState
from bot.notices.notice import CARD_CHANGED, CardChanged
from bot.service.following_jobs import refuse_follow_ups, start_settled
from bot.service.reply import catch_up
from bot.service.stopping import withdraw_if_stopped
from bot.store.store import RequestTransaction


async def show_state(tx: RequestTransaction, thread: Thread, state: ThreadState, *, poll_in: float | None) -> None:
    """Saves the state if it is new, and updates the card."""
    if state == thread.state:
        return
    await tx.threads.save_state(thread.id, state, poll_in=poll_in)
    await tx.notices.add(thread.id, CARD_CHANGED)


async def record_result(
    tx: RequestTransaction, thread: Thread, requests: Sequence[Request], settlement: Settlement
) -> None:
    """Settles all requests of one message like the first one, and tells their people."""
    before_card = requests[0].kind is RequestKind.START and thread.card_ts is None
    called_off = before_card and not await tx.notices.is_open(thread.id, CardChanged.KEY)
    await _settle_each(tx, requests, settlement)
    await show_state(tx, thread, settlement.state, poll_in=settlement.poll_in)
    if requests[0].kind is RequestKind.FOLLOW_UP:
        await tx.notices.add(thread.id, CARD_CHANGED)  # it counts follow-ups
    for notice in settlement.notices:
        await tx.notices.add(thread.id, notice)
    state, problem = settlement.request_state, settlement.problem
    for request in requests:
        uncertain = request.uncertain or settlement.uncertain
        await catch_up(tx, replace(request, state=state, problem=problem, uncertain=uncertain))
    if state is RequestState.WAITING:
        await withdraw_if_stopped(tx, thread.id, [request.id for request in requests])
    if requests[0].kind is RequestKind.START and state is RequestState.REJECTED:
        await refuse_follow_ups(tx, thread.id)
    if before_card and (start := await tx.requests.find_start(thread.id)) is not None:
        await start_settled(tx, start, called_off=called_off)


async def _settle_each(tx: RequestTransaction, requests: Sequence[Request], settlement: Settlement) -> None:
    certainly_unsent = settlement.request_state is RequestState.WAITING and not (
        requests[0].uncertain or settlement.uncertain
    )
    if certainly_unsent:
        await tx.requests.unmerge(requests[0])
    for request in requests:
        await tx.requests.settle(
            request.id,
            settlement.request_state,
            problem=settlement.problem,
            due_in=settlement.due_in,
            uncertain=settlement.uncertain,
        )
        if settlement.reaction is not None and request.message_ts:
            await tx.notices.add(request.thread_id, reaction_notice(request, settlement.reaction))


async def give_back(
    tx: RequestTransaction, request: Request, others: Sequence[Request], *, due_in: float = 0.0
) -> None:
    """Returns requests that were claimed and then not sent to the queue, where they are due in some seconds. One that
    was never sent can be edited, merges with other waiting ones, and has ended no plan; one that may have been sent
    before keeps its message.
    """
    if (thread := await tx.threads.get(request.thread_id)) is not None:
        state, _ = proposals.settled(request, thread.state, RequestState.WAITING, uncertain=request.uncertain)
        await show_state(tx, thread, state, poll_in=0.0)
    if not request.uncertain:
        await tx.requests.unmerge(request)
    for each in (request, *others):
        await tx.requests.settle(each.id, RequestState.WAITING, due_in=due_in, tried=each is not request)
        await catch_up(tx, replace(each, state=RequestState.WAITING))
    await withdraw_if_stopped(tx, request.thread_id, [each.id for each in (request, *others)])
