"""The card of a job, which always shows its newest state: a thread's first message, or a reply in another thread; and
what can be done about the job, in its row of buttons. Pure.
"""

from collections.abc import Collection, Sequence

from bot.domain.jobs.job import ARCHIVED, Problem, Progress
from bot.domain.threads.thread import NO_FOLLOW_UPS, OVER, FollowUpCounts, Thread, ThreadState, can_be_retried
from bot.jobapi.models import PlanStep, PullRequestState, StepStatus
from bot.notices.card import (
    CardState,
    asked,
    facts,
    is_undecided,
    job_state,
    link_fact,
    next_steps,
    state_of,
    steps_done,
)
from bot.notices.job import changed_pages, discard_button
from bot.notices.pull_requests import checks_and_reviews, known_facts
from bot.notices.said import ELLIPSIS, NOTHING, ButtonId, Markup
from bot.slack.rendering import blocks
from bot.slack.rendering.blocks import Block, ChatMessage, RichBlock
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import label, opening, pieces, quote, safe_url, shorten, width

_SHOWN_CHARACTERS, _SHOWN_LINES = 300, 4


def card(
    thread: Thread,
    show: MessageContext,
    follow_ups: FollowUpCounts = NO_FOLLOW_UPS,
    *,
    without: Collection[RichBlock] = (),
) -> ChatMessage:
    """The card of a thread as it is now, `without` the kinds of block that Slack does not take."""
    several_projects = show.several_projects
    state = state_of(show, thread, several_projects=several_projects)
    shown, cut = opening(thread.prompt, characters=_SHOWN_CHARACTERS, lines=_SHOWN_LINES)
    prompt = quote(pieces(shown + (ELLIPSIS if cut else ""), 2_500)[0] if shown else ELLIPSIS)
    known = facts(show, thread, follow_ups, several_projects=several_projects)
    of_pull_request = known_facts(show, thread.pull_request) if thread.pull_request else []
    pages = changed_pages(show, thread.state.work.progress.changes)
    plan = _plan(show, state.progress) if state.progress and RichBlock.PLAN not in without else []
    opened = _open_button(thread)
    framed = _pull_request_card(show, thread, opened[0]) if opened and RichBlock.CARD not in without else None
    shown_there = framed[1] if framed else ()
    small_print = [[fact for fact in told if fact not in shown_there] for told in (known, of_pull_request)]
    shown_blocks = [
        blocks.section(state.shown(show, steps_below=bool(plan))),
        *plan,
        blocks.section(f"{asked(show, thread)}\n{prompt}"),
        *([blocks.section(pages)] if pages else []),
        *(framed[:1] if framed else ()),
        *(blocks.context_block(told) for told in small_print if told),
        blocks.actions(*([] if framed else opened), *card_buttons(thread, several_projects=several_projects))
        | {"block_id": "buttons"},
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


_MAX_STEP, _MAX_STEPS = 120, 2_400
"""Characters of a step, and of all of them."""


def _plan(show: MessageContext, progress: Progress) -> list[Block]:
    """The agent's plan as a block, if it has one."""
    steps = next_steps(progress, blocks.MAX_TASKS)
    most = min(_MAX_STEP, _MAX_STEPS // max(len(steps), 1))
    tasks = (blocks.task(number, label(step.title, most), _status(step)) for number, step in steps)
    return [blocks.plan(steps_done(show, progress), tasks)] if steps else []


def _status(step: PlanStep) -> str:
    """Slack's word."""
    return "complete" if step.status is StepStatus.COMPLETED else step.status.value


def _pull_request_card(show: MessageContext, thread: Thread, opened: Block) -> tuple[Block, Sequence[Markup]]:
    """The pull request as a block, and those of the facts that it shows: each of them whole, or not at all."""
    followed, job = thread.pull_request, thread.state.job
    pull = followed.found.pull_request if followed and followed.found else None
    linked = link_fact(show, job, thread.state.work.progress, followed) if job else NOTHING
    title = show.line(label(pull.title, _MAX_STEP), blocks.MAX_CARD_TITLE) if pull and pull.title else NOTHING
    heads = [told for told in (title, linked) if 0 < width(told) <= blocks.MAX_CARD_TITLE]
    head, *below = heads or [show("Pull request")]
    told = checks_and_reviews(show, pull) if pull else []
    body = next(part for part in (told, told[:1], told[1:], []) if width("\n".join(part)) <= blocks.MAX_CARD_BODY)
    return blocks.card(head, "".join(below), "\n".join(body), opened), (*heads, *body)


def _open_button(thread: Thread) -> list[Block]:
    """The button that opens the pull request, if there is one to open."""
    job, is_pending = thread.state.job, thread.state.work.progress.pull_request is PullRequestState.PENDING
    url = safe_url(job.pr_link) if job and not is_pending else None
    if url is None:
        return []
    return [blocks.link_button("Open the pull request", ButtonId.OPEN_PULL_REQUEST, url) | {"style": "primary"}]


def card_buttons(thread: Thread, *, several_projects: bool = False) -> list[Block]:
    """The card's row, without the pull request's: at most 4, the menu last."""
    made = []
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
    "Stop this job?", "The agent is told to stop. What it has pushed stays as it is.", "Stop it", "Keep going"
)
_TWICE = blocks.confirmation("Try it again?", "If it started the first time, it's done twice.", "Try again", "Leave it")
