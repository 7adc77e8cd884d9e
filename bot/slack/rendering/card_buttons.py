"""What can be done about a job on its card. Pure."""

from bot.domain.jobs.job import ARCHIVED, Problem
from bot.domain.people.home import can_be_retried
from bot.domain.threads.thread import Thread
from bot.jobapi.models import PullRequestState
from bot.notices.card import is_undecided
from bot.notices.job import discard_button
from bot.notices.said import ButtonId
from bot.slack.rendering.blocks import (
    ASK_FOR_PROJECT,
    CARD_MENU,
    FOLLOW_UP,
    RETRY_JOB,
    Block,
    MenuItem,
    button,
    confirmation,
    link_button,
    menu,
    menu_value,
    said_by,
)
from bot.slack.rendering.text import safe_url
from bot.slack.rendering.words import card as words

_NOT_STARTED = frozenset(
    {
        Problem.REJECTED,
        Problem.UNCERTAIN,
        Problem.CANNOT_POST,
        Problem.GONE,
        Problem.STOPPED,
        Problem.WITHDRAWN,
    }
)


def card_buttons(thread: Thread, *, several_projects: bool = False) -> list[Block]:
    """The card's row: at most 5, the menu last."""
    job, made = thread.state.job, []
    is_pending = thread.state.work.progress.pull_request is PullRequestState.PENDING
    url = safe_url(job.pr_link) if job and not is_pending else None
    if url is not None:
        made.append(link_button(words.OPEN_PULL_REQUEST, ButtonId.OPEN_PULL_REQUEST, url) | {"style": "primary"})
    if several_projects and is_undecided(thread):
        made.append(button(words.CHOOSE_PROJECT, ASK_FOR_PROJECT, thread.id))
    if can_be_stopped(thread):
        made.append(button(words.STOP, ButtonId.STOP_JOB, thread.id, confirm=_STOP))
    if takes_follow_ups(thread):
        made.append(button(words.FOLLOW_UP, FOLLOW_UP, thread.id))
    if can_be_retried(thread):
        twice = thread.state.job is None and thread.state.failure.problem is Problem.UNCERTAIN
        made.append(button(words.RETRY, RETRY_JOB, thread.id, confirm=_TWICE if twice else None))
    if has_kept_work(thread):
        made += said_by([discard_button(thread.id)])
    return [*made, menu(CARD_MENU, _menu(thread, several_projects=several_projects))]


def can_be_stopped(thread: Thread) -> bool:
    """Returns whether the agent is working, or about to."""
    job, problem = thread.state.job, thread.state.failure.problem
    if problem is Problem.GONE:
        return False
    if job is None:
        return problem not in _NOT_STARTED
    return not job.ended and not thread.state.people.stopped_by


def has_kept_work(thread: Thread) -> bool:
    """Returns whether a failed job has kept work that nobody has continued."""
    job, problem = thread.state.job, thread.state.failure.problem
    return (
        job is not None and job.ended and problem is not Problem.GONE and thread.state.work.progress.partial_files > 0
    )


def takes_follow_ups(thread: Thread) -> bool:
    """Whether there is a job that can be steered, and nobody has muted it."""
    job, gone = thread.state.job, thread.state.failure.problem is Problem.GONE
    return job is not None and job.status != ARCHIVED and not gone and not thread.state.people.muted_by


def can_switch_project(thread: Thread) -> bool:
    """Returns whether the project can be switched. It cannot while nobody knows whether the request arrived."""
    settled = thread.state.failure.problem in {Problem.UNCERTAIN, Problem.WITHDRAWN, Problem.CANNOT_POST}
    return not (is_undecided(thread) or (thread.state.job is None and settled))


def _menu(thread: Thread, *, several_projects: bool) -> dict[str, str]:
    made = {words.SHOW_REQUEST: menu_value(MenuItem.WHOLE_REQUEST, thread.id)}
    if several_projects and can_switch_project(thread):
        made[words.SWITCH_PROJECT] = menu_value(MenuItem.PROJECT, thread.id)
    if thread.state.people.muted_by:
        made[words.UNMUTE] = menu_value(MenuItem.UNMUTE, thread.id)
    else:
        made[words.MUTE] = menu_value(MenuItem.MUTE, thread.id)
    if thread.state.job is not None:
        made[words.SHOW_JOB_ID] = menu_value(MenuItem.JOB_ID, thread.id)
    return made


_STOP = confirmation(words.STOP_TITLE, words.STOP_MEANING, words.STOP_YES, words.STOP_NO)
_TWICE = confirmation(words.RETRY_TITLE, words.RETRY_RISK, words.RETRY_YES, words.RETRY_NO)
