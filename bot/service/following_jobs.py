"""Jobs that follow or replace another one in their Slack thread, the choice of a job's project, and starts that lead to
no job: refused, withdrawn, stopped before they were sent, or without a card.

The new job takes its place once it has passed its checks, and ends the other one once it has its card. If the new
job is refused, or its card cannot be posted, the other one stays unchanged. Both threads are locked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.domain.jobs.job import Problem
from bot.domain.jobs.poll_pace import Polling, next_poll_in
from bot.domain.jobs.stopping import is_at_work
from bot.domain.messages import beginning
from bot.domain.projects import ProjectReason, Projects
from bot.domain.requests.audit import AuditAction, audited
from bot.domain.requests.edits import MAX_QUOTED, reaction_notice
from bot.domain.requests.new_jobs import may_replace, moving_along, new_request, once_more
from bot.domain.requests.request import NOT_SENT_YET, RejectionReason, Request, RequestKind, RequestState, WayIn
from bot.domain.requests.settle import rejection
from bot.domain.threads.reply_rules import steered_by
from bot.domain.threads.thread import ProposalEnd, Thread, ThreadState
from bot.notices.answers import ActionAnswer, answered
from bot.notices.notice import CARD_CHANGED, NewNotice, Reaction
from bot.notices.questions import ProjectAsked
from bot.service import proposals
from bot.service.start import record_start
from bot.store.store import RecordingTransaction, RequestTransaction
from bot.store.threads import Threads

NOT_SENT = NOT_SENT_YET | {RequestState.AWAITING_PERSON}
"""States of a start that can still be changed or withdrawn before the job API gets it."""


@dataclass(frozen=True)
class ActionTerms:
    """The terms for actions: the projects, how jobs are polled, and a random number from 0 to 1."""

    projects: Projects
    polling: Polling
    jitter: float = 0.5


async def note_steering(
    tx: RequestTransaction, thread: Thread, person_id: str, terms: ActionTerms, *, for_good: bool = False
) -> None:
    """Records that somebody steers a job. `for_good`: they asked that all their replies in its thread be sent."""
    state = steered_by(thread, person_id, terms.projects.replies(thread.channel_id), for_good=for_good)
    if state != thread.state:
        await keep_polling(tx, thread, state, terms)


async def keep_polling(tx: RequestTransaction, thread: Thread, state: ThreadState, terms: ActionTerms) -> None:
    """Saves the state of a job, and continues to poll it if it is polled."""
    poll_in = next_poll_in(state, tx.now, terms.polling, jitter=terms.jitter)
    await tx.threads.save_state(thread.id, state, poll_in=poll_in)


_WITH_A_CARD = frozenset({RequestState.WAITING, RequestState.SENDING, RequestState.AWAITING_PERSON})
"""A start in one of these states has a card, or one is on its way, unless its person is asked first."""
_MAY_HAVE_A_JOB = frozenset({RequestState.SENDING, RequestState.ACCEPTED, RequestState.UNCERTAIN})
_CAME_TO_NOTHING = frozenset({RequestState.REJECTED, RequestState.WITHDRAWN})


async def end_start(
    tx: RecordingTransaction, thread: Thread, start: Request, problem: Problem, reason: str = ""
) -> bool:
    """Ends a start, updates its card, and tells those who have already replied. `problem` is what the card, or Home,
    shows; `reason` is why the request ended: Slack's error code if its card could not be posted. False if there is no
    card and none to come: then replies in the Slack thread are no longer for this job.
    """
    state = RequestState.WITHDRAWN if problem is Problem.WITHDRAWN else RequestState.REJECTED
    await tx.requests.settle(start.id, state, problem=reason)
    words = reason if problem is Problem.CANNOT_POST else ""
    await tx.threads.save_state(thread.id, thread.state.with_problem(problem, words), poll_in=None)
    on_its_way = start.state in _WITH_A_CARD and problem is not Problem.CANNOT_POST and not start.held_because
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
        await end_start(tx, thread, start, Problem.CANNOT_POST, why)
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
    if followed is None or followed.state.replaced_by != thread.id:
        return None
    start = await tx.requests.find_start(thread.id)
    return None if start is None else (followed, start)


_TOO_LATE = {WayIn.RETRY: ActionAnswer.NOT_TO_BE_RETRIED, WayIn.SWITCH: ActionAnswer.PROJECT_SETTLED}
_DONE = {WayIn.RETRY: ActionAnswer.STARTED_AGAIN, WayIn.SWITCH: ActionAnswer.PROJECT_SWITCHED}
_AUDITED = {WayIn.RETRY: AuditAction.RETRIED, WayIn.SWITCH: AuditAction.PROJECT_CHOSEN}
"""For jobs that replace another one."""


async def take_place(tx: RequestTransaction, thread: Thread, start: Request, terms: ActionTerms) -> Thread | None:
    """Gives a job that passed its checks its place: from now on, replies in its Slack thread are for it, and waiting
    ones move to it. None, and its person is told, if the job that it should replace can no longer be replaced.
    """
    followed = await tx.threads.get(thread.follows) if thread.follows else None
    replaces = start.way_in in _DONE and followed is not None
    if replaces and followed is not None and not may_replace(followed, start):
        await end_start(tx, thread, start, Problem.REJECTED, RejectionReason.REPLACED)
        await tx.notices.add(followed.id, answered(start, _TOO_LATE[start.way_in]))
        return None
    if thread.ts is None and thread.root_ts:
        thread = await tx.threads.attach(thread)
    if followed is None or followed.state.replaced_by == thread.id:
        return thread
    along = moving_along(await tx.requests.unsent(followed.id), start)
    await tx.requests.move(along, thread.id)
    if replaces:
        await keep_polling(tx, followed, replace(followed.state, replaced_by=thread.id), terms)
    if (replaces or along) and followed.card_ts is not None:
        # It counts waiting follow-ups, and no longer offers a retry.
        await tx.notices.add(followed.id, CARD_CHANGED)
    return thread


async def replace_followed(tx: RequestTransaction, thread: Thread) -> None:
    """Ends the job that another one replaces, now that the new one has its card, and tells its requester."""
    found = await replaced_by(tx, thread)
    if found is None:
        return
    followed, start = found
    await proposals.end(tx, followed, ProposalEnd.OVER)
    if start.way_in is WayIn.SWITCH and is_at_work(followed.state, tx.now) and not followed.state.people.stopped_by:
        await stop_automatically(tx, followed, start)
    await tx.notices.add(followed.id, answered(start, _DONE[start.way_in]))
    await tx.audit.add(audited(_AUDITED[start.way_in], start, followed))


async def alive(threads: Threads, thread: Thread) -> Thread:
    """Returns the thread of the last job in the chain of jobs that replace this one."""
    seen = {thread.id}
    while thread.state.replaced_by not in {"", *seen}:
        instead = await threads.get(thread.state.replaced_by)
        if instead is None:
            break
        seen.add(instead.id)
        thread = instead
    return thread


async def choose_project(
    tx: RequestTransaction, thread: Thread, action: Request, terms: ActionTerms
) -> ActionAnswer | None:
    """Chooses or changes the project of a job; without a name, asks for it."""
    start, project = await tx.requests.find_start(thread.id), terms.projects.named(action.text)
    if start is not None and not action.text:
        others = [name for name in terms.projects.names if name != thread.project]
        await ask_for_project(tx, thread, action, others, current=thread.project)
        return None
    if start is None or project is None:
        return ActionAnswer.PROJECT_SETTLED
    if start.state in NOT_SENT and not start.uncertain:
        options = replace(thread.options, project_said=project.name, project_reason=ProjectReason.CHOSEN)
        await tx.threads.set_project(thread.id, project.name, options)
        if _is_prepared_again(thread, start, project.name):
            await tx.requests.settle(start.id, RequestState.RECEIVED, afresh=True)
            await tx.threads.save_state(thread.id, thread.state.with_problem(None), poll_in=None)
        elif start.state is RequestState.WAITING:
            await tx.notices.add(thread.id, CARD_CHANGED)
        return ActionAnswer.PROJECT_CHOSEN
    return await _switch_project(tx, thread, start, action, project.name)


def _is_prepared_again(thread: Thread, start: Request, project: str) -> bool:
    """Returns whether a start has to be prepared again for its project, which has its files and its modes."""
    if start.state is RequestState.WAITING:
        return thread.project != project
    return start.state is RequestState.AWAITING_PERSON


async def _switch_project(
    tx: RequestTransaction, thread: Thread, start: Request, action: Request, project: str
) -> ActionAnswer | None:
    """Starts the same job for another project, in the same thread, to replace the one that was sent."""
    if thread.ts is None and not thread.root_ts:
        return ActionAnswer.START_ENDED  # there is no Slack thread in which another job could begin
    settled = start.state not in {RequestState.ACCEPTED, RequestState.REJECTED} or project == thread.project
    if settled or thread.state.replaced_by:
        return ActionAnswer.PROJECT_SETTLED
    other = replace(once_more(thread, start, action), way_in=WayIn.SWITCH, project_said=project)
    await record_start(tx, replace(other, source_key=f"switch/{action.source_key}"))
    return None


async def ask_for_project(
    tx: RequestTransaction, thread: Thread, request: Request, names: Sequence[str], *, said: str = "", current: str = ""
) -> None:
    """Asks somebody, privately, which project a job is for. `said` is the unknown name that was given, or empty;
    `current` is the job's project, or empty while it waits for one.
    """
    text = beginning(thread.prompt, MAX_QUOTED)
    asked = ProjectAsked(request.person_id, thread.id, tuple(names), said, text, current)
    await tx.notices.add(thread.id, NewNotice(ProjectAsked.key(request), asked))
