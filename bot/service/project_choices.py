"""For which project a job is: asking for it, choosing it, switching to another one. Each function is part of a
transaction in which the thread is locked.
"""

from dataclasses import dataclass, replace

from bot.domain.context.mentions import beginning
from bot.domain.jobs.observe import with_problem
from bot.domain.notices import keys
from bot.domain.notices.messages import CARD_CHANGED, ActionAnswer, NewNotice
from bot.domain.notices.questions import ProjectAsked
from bot.domain.projects import ProjectReason
from bot.domain.requests.edits import MAX_QUOTED
from bot.domain.requests.request import Request, RequestState, WayIn
from bot.domain.threads.thread import Thread
from bot.service.action_terms import NOT_SENT, ActionTerms, ActionTransaction
from bot.service.starts import once_more, record_start


async def choose_project(
    tx: ActionTransaction, thread: Thread, action: Request, terms: ActionTerms
) -> ActionAnswer | None:
    """Of a job that waits for the choice, or another one than was chosen for it; without a name, which is asked."""
    start, project = await tx.requests.find_start(thread.id), terms.projects.named(action.text)
    if start is not None and not action.text:
        await ask_for_project(tx, thread, action, _offered(thread, terms.projects.names))
        return None
    if start is None or project is None:
        return ActionAnswer.PROJECT_SETTLED
    if start.state in NOT_SENT and not start.uncertain:
        options = replace(thread.options, project_said=project.name, project_reason=ProjectReason.CHOSEN)
        await tx.threads.set_project(thread.id, project.name, options)
        if _is_prepared_anew(thread, start, project.name):
            await tx.requests.settle(start.id, RequestState.RECEIVED, afresh=True)
            await tx.threads.save_state(thread.id, with_problem(thread.state, None), poll_in=None)
        elif start.state is RequestState.WAITING:
            await tx.notices.add(thread.id, CARD_CHANGED)
        return ActionAnswer.PROJECT_CHOSEN
    return await _switch_project(tx, thread, start, action, project.name)


def _is_prepared_anew(thread: Thread, start: Request, project: str) -> bool:
    """Whether a start has to be prepared for its project: what was prepared goes to any, but for files."""
    if start.state is RequestState.WAITING:
        return thread.project != project and bool(start.attachments.files)
    return start.state is RequestState.AWAITING_PERSON


async def _switch_project(
    tx: ActionTransaction, thread: Thread, start: Request, action: Request, project: str
) -> ActionAnswer | None:
    """The same job for another project, in the same thread, instead of the one that was sent."""
    if thread.ts is None and not thread.root_ts:
        return ActionAnswer.START_ENDED  # it has no Slack thread in which another job could begin
    settled = start.state not in {RequestState.ACCEPTED, RequestState.REJECTED} or project == thread.project
    if settled or thread.state.replaced_by:
        return ActionAnswer.PROJECT_SETTLED
    other = replace(once_more(thread, start, action), way_in=WayIn.SWITCH, project_said=project)
    await record_start(tx, replace(other, source_key=f"switch/{action.source_key}"))
    return None


@dataclass(frozen=True)
class ProjectQuestion:
    """Which of these a request is for. `said` is the name that was given and is none; empty: none was. `current` is the
    project that it has, and would leave; empty: it has none, and waits.
    """

    names: tuple[str, ...]
    said: str = ""
    current: str = ""


def _offered(thread: Thread, names: tuple[str, ...]) -> ProjectQuestion:
    """All of them, but for the one that the job has."""
    return ProjectQuestion(tuple(name for name in names if name != thread.project), current=thread.project)


async def ask_for_project(tx: ActionTransaction, thread: Thread, request: Request, question: ProjectQuestion) -> None:
    """Asks somebody, privately, which project a job is for."""
    text = beginning(thread.prompt, MAX_QUOTED)
    asked = ProjectAsked(request.person_id, thread.id, question.names, question.said, text, question.current)
    await tx.notices.add(thread.id, NewNotice(keys.project_asked(request), asked))
