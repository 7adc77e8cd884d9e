"""Ends a start that does not lead to a job: refused, withdrawn, stopped before it was sent, or without a card. Stops a
job that was created and is not to go on.
"""

from dataclasses import dataclass, replace

from bot.domain.jobs.job import Problem
from bot.domain.jobs.observe import with_problem
from bot.domain.jobs.stopping import is_at_work
from bot.domain.requests.audit import AuditAction, audited
from bot.domain.requests.request import RejectionReason, Request, RequestKind, RequestState, WayIn, surface_of
from bot.domain.requests.settle import rejection, summary
from bot.domain.threads.thread import Thread
from bot.notices.answers import ActionAnswer, ActionAnswered
from bot.notices.notice import CARD_CHANGED, NewNotice, NoticeKey, Reaction
from bot.notices.requests import RequestRejected
from bot.service.action_terms import NOT_SENT
from bot.service.start import new_request, reaction_notice
from bot.store.store import RecordingTransaction, RequestTransaction

_WITH_A_CARD = frozenset({RequestState.WAITING, RequestState.SENDING, RequestState.AWAITING_PERSON})
"""A start in one of these states has a card, or one is on its way, unless its person is asked first."""
_MAY_HAVE_A_JOB = frozenset({RequestState.SENDING, RequestState.ACCEPTED, RequestState.UNCERTAIN})
_CAME_TO_NOTHING = frozenset({RequestState.REJECTED, RequestState.WITHDRAWN})


@dataclass(frozen=True)
class StartEnding:
    """Why there will be no job.

    Attributes:
        problem: What the card, or Home, shows.
        reason: Why the request ended.
        problem_text: What the card shows besides: Slack's words, or the job API's.
        state: How the request ended.
    """

    problem: Problem
    reason: str = ""
    problem_text: str = ""
    state: RequestState = RequestState.REJECTED


async def end_start(tx: RecordingTransaction, thread: Thread, start: Request, ending: StartEnding) -> bool:
    """Ends a start, updates its card, and tells those who have already replied. False if there is no card and none to
    come: then replies in the Slack thread are no longer for this job.
    """
    await tx.requests.settle(start.id, ending.state, problem=ending.reason)
    state = with_problem(thread.state, ending.problem, ending.problem_text)
    await tx.threads.save_state(thread.id, state, poll_in=None)
    on_its_way = start.state in _WITH_A_CARD and ending.problem is not Problem.CANNOT_POST and not start.held_because
    has_card = thread.card_ts is not None or on_its_way
    if has_card:
        await tx.notices.add(thread.id, CARD_CHANGED)
    else:
        await tx.threads.detach(thread.id)
    await refuse_follow_ups(tx, thread.id)
    return has_card


async def stop_automatically(tx: RequestTransaction, thread: Thread, start: Request) -> None:
    """Has a job stopped because of what happened to a start: its own card cannot be posted, or it replaces the job."""
    key = f"{start.source_key}/stop"
    stop = new_request(thread, RequestKind.STOP, key, start.person, "", way_in=WayIn.SWITCH)
    await tx.requests.add(replace(stop, state=RequestState.WAITING, recorded_at=tx.now))
    await tx.audit.add(audited(AuditAction.STOPPED, stop, thread))


async def call_off(tx: RequestTransaction, thread: Thread, start: Request, why: str) -> bool:
    """Ends a job whose card cannot be posted; `why`: Slack's error code. One that was created is stopped, one that is
    being created once that is known (`start_settled`). Returns whether there may be one.
    """
    if not (start.uncertain or start.state in _MAY_HAVE_A_JOB):
        await end_start(tx, thread, start, StartEnding(Problem.CANNOT_POST, why, why))
        return False
    await tx.threads.detach(thread.id)
    await refuse_follow_ups(tx, thread.id)
    if is_at_work(thread.state, tx.now):
        await stop_automatically(tx, thread, start)
    return True


async def start_settled(tx: RequestTransaction, start: Request, *, called_off: bool) -> None:
    """Handles the outcome of a start that went ahead of its card. `called_off`: meanwhile, the card was given up."""
    thread = await tx.threads.get(start.thread_id)
    if thread is None:
        return
    await tx.homes.changed(thread.requester_id, due_in=0.0)
    if called_off and start.state in {RequestState.WAITING, RequestState.ACCEPTED}:
        await call_off(tx, thread, start, "card_not_posted")


async def refuse_follow_ups(tx: RecordingTransaction, thread_id: str) -> None:
    """Tells those who have already replied that there will be no job."""
    for follow_up in await tx.requests.waiting_follow_ups(thread_id):
        await tx.requests.settle(follow_up.id, RequestState.REJECTED, problem=RejectionReason.NOT_STARTED)
        await tx.notices.add(thread_id, reaction_notice(follow_up, Reaction.PROBLEM))
        await tx.notices.add(thread_id, rejection(follow_up, RejectionReason.NOT_STARTED))


async def stop_unsent(tx: RequestTransaction, thread: Thread, stop: Request) -> bool:
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
        has_card = await end_start(tx, thread, start, StartEnding(Problem.STOPPED, RejectionReason.STOPPED))
        if has_card or start.person_id != stop.person_id:  # without a card, the requester gets a private answer
            stopped = RequestRejected(summary(start), RejectionReason.STOPPED, stopped_by=stop.person_id)
            await tx.notices.add(thread.id, NewNotice(RequestRejected.key(start), stopped))
        await tx.audit.add(audited(AuditAction.STOPPED, stop, thread))
    told = ActionAnswered(stop.person_id, answer, asked_on=surface_of(stop.source_key))
    await tx.notices.add(thread.id, NewNotice(NoticeKey(stop.source_key), told))
    return True


async def restore_followed(tx: RecordingTransaction, thread: Thread) -> None:
    """Restores a job after the one that should follow or replace it was given up. Moved requests come back if the
    job is alive.
    """
    followed = await tx.threads.get(thread.follows) if thread.follows else None
    before = await tx.requests.find_start(followed.id) if followed is not None else None
    if followed is None or before is None:
        return
    replaced = await replaced_by(tx, thread) is not None
    if before.state not in _CAME_TO_NOTHING:
        await tx.requests.move(await tx.requests.unsent(thread.id), followed.id)
    if replaced:
        state = replace(followed.state, replaced_by="")
        await tx.threads.save_state(followed.id, state, poll_in=None if state.job is None else 0.0)
    if followed.card_ts is not None:
        await tx.notices.add(followed.id, CARD_CHANGED)


async def keep_followed(tx: RecordingTransaction, thread: Thread) -> None:
    """Restores a job whose successor ends before it began, unless it was replaced already."""
    if thread.card_ts is None or await replaced_by(tx, thread) is None:
        await restore_followed(tx, thread)


async def replaced_by(tx: RecordingTransaction, thread: Thread) -> tuple[Thread, Request] | None:
    """Returns the job that this one replaces, with this one's start; None if it replaces none."""
    followed = await tx.threads.get(thread.follows) if thread.follows else None
    start = await tx.requests.find_start(thread.id)
    if followed is None or start is None or followed.state.replaced_by != thread.id:
        return None
    return followed, start
