"""Handles a request when it is claimed, and when its answer is known.

Claiming determines what is sent with the request, and opens its round: from then on, all changes of the job are news,
even if a poll sees them before the request is recorded as accepted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from bot.domain.context import files_reach
from bot.domain.jobs import stopping
from bot.domain.jobs.observe import open_round
from bot.domain.jobs.poll_pace import Polling, next_poll_in
from bot.domain.jobs.stopping import StopStep, stop_step
from bot.domain.requests.edits import reaction_notice
from bot.domain.requests.follow_ups import MOST_MERGED, continues, merged_with
from bot.domain.requests.request import Request, RequestKind, RequestState
from bot.domain.requests.settle import Settlement
from bot.domain.threads.thread import Thread, ThreadState
from bot.notices.notice import CARD_CHANGED, CardChanged
from bot.service.following_jobs import alive, refuse_follow_ups, start_settled
from bot.service.reply import catch_up
from bot.service.stopping import withdraw_if_stopped
from bot.store.request_queue import ClaimedRequest
from bot.store.store import RequestTransaction


@dataclass(frozen=True)
class ClaimSettings:
    """How requests are claimed. `lease` is in seconds, and so is `merge`, the longest gap between replies that are sent
    as one message.
    """

    owner: str
    lease: float
    merge: float
    polling: Polling
    can_cancel: Callable[[str], bool]
    jitter: Callable[[], float]


async def open_claimed(tx: RequestTransaction, item: ClaimedRequest, settings: ClaimSettings) -> ClaimedRequest | None:
    """Prepares a claimed request for sending. None if it has to be prepared again: its job was replaced, an earlier one
    that should include a part of the Slack thread did not arrive, or its files are at another project's job API.
    """
    request, thread, state = item.request, item.thread, item.thread.state
    match request.kind:
        case RequestKind.FOLLOW_UP if state.replaced_by and not _fixed(item):
            await _pass_on(tx, item)
            return None
        case RequestKind.FOLLOW_UP:
            up_to_date = continues(request, state.read_until) and files_reach(request, thread.project)
            if not (_fixed(item) or up_to_date):  # gathering the context again would not give the same
                await tx.requests.prepared(replace(request, state=RequestState.RECEIVED))
                return None
            item = await _with_others(tx, item, settings)
            state = open_round(state, tx.now, settings.polling, asker_id(request, thread))
        case RequestKind.STOP:
            step = stop_step(state, tx.now, can_cancel=settings.can_cancel(thread.project))
            if step is StopStep.ASK_AGENT:
                state = open_round(state, tx.now, settings.polling, asker_id(request, thread))
            else:
                state = stopping.opened(state, request, step)
        case _:
            pass
    sent_before = item.uncertain or request.restored
    state = replace(
        state, announcements=replace(state.announcements, restored=state.announcements.restored and sent_before)
    )
    if state == thread.state:
        return item
    poll_in = next_poll_in(state, tx.now, settings.polling, jitter=settings.jitter())
    await tx.threads.save_state(thread.id, state, poll_in=poll_in)
    if state.people.stopped_by != thread.state.people.stopped_by:
        await tx.notices.add(thread.id, CARD_CHANGED)
    return replace(item, thread=replace(thread, state=state, revision=thread.revision + 1))


async def _pass_on(tx: RequestTransaction, item: ClaimedRequest) -> None:
    """Moves a follow-up to the job that replaced its own while it was being sent, in vain."""
    job = await alive(tx.threads, item.thread)
    await tx.requests.move([item.request], job.id)
    for changed in (item.thread, job):
        if changed.card_ts is not None:
            await tx.notices.add(changed.id, CARD_CHANGED)  # it counts waiting follow-ups


def _fixed(item: ClaimedRequest) -> bool:
    """Returns whether the request may have arrived; then it can only be sent again unchanged."""
    return item.uncertain or item.request.uncertain


def asker_id(request: Request, thread: Thread) -> str:
    """Returns the writer of a follow-up if that is not the thread's requester: the agent's questions go to them."""
    return "" if request.person_id == thread.requester_id else request.person_id


async def _with_others(tx: RequestTransaction, item: ClaimedRequest, settings: ClaimSettings) -> ClaimedRequest:
    """Returns the request with those sent with it as one message. What was sent with it before is sent with it again (a
    person may have asked for that). If it may have arrived, nothing is added, so that the message stays the same.
    """
    request = item.request
    others = tuple(await tx.requests.merged_into(request.id))
    if not (_fixed(item) or others):
        stopped_at = [stop.recorded_at for stop in await tx.requests.stops(request.thread_id)]
        following = await tx.requests.follow_ups_after(request, limit=MOST_MERGED)
        reached = list(takewhile(lambda each: files_reach(each, item.thread.project), following))
        others = merged_with(request, reached, stopped_at, settings.merge)
    if others:
        await tx.requests.merge(request, others, settings.owner, lease=settings.lease)
    return replace(item, merged=others)


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
        await tx.requests.unmerge(requests[0].id)
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
    was never sent can be edited, and merges with other waiting ones; one that may have been sent before keeps its
    message.
    """
    if not request.uncertain:
        await tx.requests.unmerge(request.id)
    for each in (request, *others):
        await tx.requests.settle(each.id, RequestState.WAITING, due_in=due_in, tried=each is not request)
        await catch_up(tx, replace(each, state=RequestState.WAITING))
    await withdraw_if_stopped(tx, request.thread_id, [each.id for each in (request, *others)])
