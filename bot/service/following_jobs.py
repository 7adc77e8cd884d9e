"""Lets a job follow or replace another one in its Slack thread, and chooses a job's project.

The new job takes its place once it has passed its checks, and ends the other one once it has its card. If the new
job is refused, or its card cannot be posted, the other one stays unchanged. Both threads are locked.
"""

from dataclasses import dataclass, replace

from bot.domain.context.message_text import beginning
from bot.domain.jobs.job import Problem
from bot.domain.jobs.observe import with_problem
from bot.domain.jobs.stopping import is_at_work
from bot.domain.projects import ProjectReason
from bot.domain.requests.audit import AuditAction, audited
from bot.domain.requests.edits import MAX_QUOTED
from bot.domain.requests.new_jobs import may_replace, moving_along
from bot.domain.requests.request import RejectionReason, Request, RequestState, WayIn, surface_of
from bot.domain.threads.thread import Thread
from bot.notices.answers import ActionAnswer, ActionAnswered
from bot.notices.notice import CARD_CHANGED, NewNotice, NoticeKey
from bot.notices.questions import ProjectAsked
from bot.service.action_terms import NOT_SENT, ActionTerms, keep_polling
from bot.service.end_start import StartEnding, end_start, replaced_by, stop_automatically
from bot.service.start import once_more, record_start
from bot.store.store import RequestTransaction
from bot.store.threads import Threads

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
        await end_start(tx, thread, start, StartEnding(Problem.REJECTED, RejectionReason.REPLACED))
        await _answer(tx, followed, start, _TOO_LATE[start.way_in])
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
        await tx.notices.add(
            followed.id, CARD_CHANGED
        )  # the card counts waiting follow-ups, and no longer offers a retry
    return thread


async def replace_followed(tx: RequestTransaction, thread: Thread) -> None:
    """Ends the job that another one replaces, now that the new one has its card, and tells its requester."""
    found = await replaced_by(tx, thread)
    if found is None:
        return
    followed, start = found
    if start.way_in is WayIn.SWITCH and is_at_work(followed.state, tx.now) and not followed.state.people.stopped_by:
        await stop_automatically(tx, followed, start)
    await _answer(tx, followed, start, _DONE[start.way_in])
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


async def _answer(tx: RequestTransaction, thread: Thread, start: Request, answer: ActionAnswer) -> None:
    told = ActionAnswered(start.person_id, answer, asked_on=surface_of(start.source_key))
    await tx.notices.add(thread.id, NewNotice(NoticeKey(start.source_key), told))


async def choose_project(
    tx: RequestTransaction, thread: Thread, action: Request, terms: ActionTerms
) -> ActionAnswer | None:
    """Chooses or changes the project of a job; without a name, asks for it."""
    start, project = await tx.requests.find_start(thread.id), terms.projects.named(action.text)
    if start is not None and not action.text:
        others = tuple(name for name in terms.projects.names if name != thread.project)
        await ask_for_project(tx, thread, action, ProjectQuestion(others, current=thread.project))
        return None
    if start is None or project is None:
        return ActionAnswer.PROJECT_SETTLED
    if start.state in NOT_SENT and not start.uncertain:
        options = replace(thread.options, project_said=project.name, project_reason=ProjectReason.CHOSEN)
        await tx.threads.set_project(thread.id, project.name, options)
        if _is_prepared_again(thread, start, project.name):
            await tx.requests.settle(start.id, RequestState.RECEIVED, afresh=True)
            await tx.threads.save_state(thread.id, with_problem(thread.state, None), poll_in=None)
        elif start.state is RequestState.WAITING:
            await tx.notices.add(thread.id, CARD_CHANGED)
        return ActionAnswer.PROJECT_CHOSEN
    return await _switch_project(tx, thread, start, action, project.name)


def _is_prepared_again(thread: Thread, start: Request, project: str) -> bool:
    """Returns whether a start has to be prepared again for its project: only files depend on the project."""
    if start.state is RequestState.WAITING:
        return thread.project != project and bool(start.attachments.files)
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


@dataclass(frozen=True)
class ProjectQuestion:
    """Returns the question about a request's project. `said` is the unknown name that was given, or empty; `current` is
    the job's project, or empty while it waits for one.
    """

    names: tuple[str, ...]
    said: str = ""
    current: str = ""


async def ask_for_project(tx: RequestTransaction, thread: Thread, request: Request, question: ProjectQuestion) -> None:
    """Asks somebody, privately, which project a job is for."""
    text = beginning(thread.prompt, MAX_QUOTED)
    asked = ProjectAsked(request.person_id, thread.id, question.names, question.said, text, question.current)
    await tx.notices.add(thread.id, NewNotice(ProjectAsked.key(request), asked))
