"""The card of a job, which always shows its newest state: a thread's first message, or a reply in another thread; and
what can be done about the job, in its row of buttons. Pure.
"""

from bot.domain.jobs.job import ARCHIVED, Problem
from bot.domain.threads.thread import NO_FOLLOW_UPS, OVER, FollowUpCounts, Thread, ThreadState, can_be_retried
from bot.jobapi.models import PullRequestState
from bot.notices.card import CardState, asked, facts, is_undecided, job_state, state_of
from bot.notices.job import changed_pages, discard_button
from bot.notices.pull_requests import known_facts
from bot.notices.said import ELLIPSIS, ButtonId
from bot.slack.rendering import blocks
from bot.slack.rendering.blocks import Block, ChatMessage
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import opening, pieces, quote, safe_url, shorten

_SHOWN_CHARACTERS, _SHOWN_LINES = 300, 4


def card(thread: Thread, show: MessageContext, follow_ups: FollowUpCounts = NO_FOLLOW_UPS) -> ChatMessage:
    """The card of a thread as it is now."""
    several_projects = show.several_projects
    state = state_of(show, thread, several_projects=several_projects)
    shown, cut = opening(thread.prompt, characters=_SHOWN_CHARACTERS, lines=_SHOWN_LINES)
    prompt = quote(pieces(shown + (ELLIPSIS if cut else ""), 2_500)[0] if shown else ELLIPSIS)
    known = facts(show, thread, follow_ups, several_projects=several_projects)
    of_pull_request = known_facts(show, thread.pull_request) if thread.pull_request else []
    pages = changed_pages(show, thread.state.work.progress.changes)
    shown_blocks = [
        blocks.section(state.shown(show)),
        blocks.section(f"{asked(show, thread)}\n{prompt}"),
        *([blocks.section(pages)] if pages else []),
        blocks.context_block(known),
        *([blocks.context_block(of_pull_request)] if of_pull_request else []),
        blocks.actions(*card_buttons(thread, several_projects=several_projects)),
    ]
    return ChatMessage(
        _text(show, thread, state, shown, [*known, *of_pull_request, *_sentences(pages)]), tuple(shown_blocks)
    )


def status_text(thread: Thread, show: MessageContext, follow_ups: FollowUpCounts) -> str:
    """The same facts as the card's, as text of one paragraph."""
    several_projects = show.several_projects
    state = state_of(show, thread, several_projects=several_projects)
    of_pull_request = known_facts(show, thread.pull_request) if thread.pull_request else []
    known = facts(show, thread, follow_ups, several_projects=several_projects)
    return "\n".join([state.shown(show), *known, *of_pull_request])


def state_line(state: ThreadState, show: MessageContext) -> str:
    """Returns the state of the job, claiming no more than the status that the job API reports."""
    return job_state(show, state).shown(show)


def _text(show: MessageContext, thread: Thread, state: CardState, prompt: str, rest: list[str]) -> str:
    """Returns the text for notifications and screen readers: the state, and as many other facts as fit."""
    text = f"{state.spoken(show)}\n{asked(show, thread)} {shorten(prompt, 1_200)}\n"
    for sentence in rest:
        if len(text) + len(sentence) + 2 <= blocks.MAX_TEXT:
            text += f"{sentence.rstrip('.')}. "
    return text.rstrip(" ")


def _sentences(pages: str) -> list[str]:
    """The changed pages as one sentence."""
    title, *listed = pages.split("\n")
    return [f"{title} {', '.join(line.removeprefix('• ') for line in listed)}"] if listed else [title] * bool(title)


def card_buttons(thread: Thread, *, several_projects: bool = False) -> list[Block]:
    """The card's row: at most 5, the menu last."""
    job, made = thread.state.job, []
    is_pending = thread.state.work.progress.pull_request is PullRequestState.PENDING
    url = safe_url(job.pr_link) if job and not is_pending else None
    if url is not None:
        made.append(blocks.link_button("Open the pull request", ButtonId.OPEN_PULL_REQUEST, url) | {"style": "primary"})
    if several_projects and is_undecided(thread):
        made.append(blocks.button("Choose the project…", blocks.ASK_FOR_PROJECT, thread.id))
    if can_be_stopped(thread):
        made.append(blocks.button("Stop", ButtonId.STOP_JOB, thread.id, confirm=_STOP))
    if takes_follow_ups(thread):
        made.append(blocks.button("Follow up…", blocks.FOLLOW_UP, thread.id))
    if can_be_retried(thread):
        twice = thread.state.job is None and thread.state.failure.problem is Problem.UNCERTAIN
        made.append(blocks.button("Retry", blocks.RETRY_JOB, thread.id, confirm=_TWICE if twice else None))
    if has_kept_work(thread):
        made += blocks.said_by([discard_button(thread.id)])
    return [*made, blocks.menu(blocks.CARD_MENU, _menu(thread, several_projects=several_projects))]


def can_be_stopped(thread: Thread) -> bool:
    """Returns whether the agent is working, or about to."""
    job, problem = thread.state.job, thread.state.failure.problem
    if problem is Problem.GONE:
        return False
    if job is None:
        return problem not in OVER
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
    made = {"Show the whole request": blocks.menu_value(blocks.MenuItem.WHOLE_REQUEST, thread.id)}
    if several_projects and can_switch_project(thread):
        made["Switch project…"] = blocks.menu_value(blocks.MenuItem.PROJECT, thread.id)
    if thread.state.people.muted_by:
        made["Unmute"] = blocks.menu_value(blocks.MenuItem.UNMUTE, thread.id)
    else:
        made["Mute"] = blocks.menu_value(blocks.MenuItem.MUTE, thread.id)
    if thread.state.job is not None:
        made["Show the job's id"] = blocks.menu_value(blocks.MenuItem.JOB_ID, thread.id)
    return made


_STOP = blocks.confirmation(
    "Stop this job?", "The agent is told to stop. What it has changed so far stays as it is.", "Stop it", "Keep going"
)
_TWICE = blocks.confirmation("Try it again?", "If it started the first time, it's done twice.", "Try again", "Leave it")
