"""The card: a thread's first message, which always shows the job's newest state."""

from collections.abc import Mapping

from bot.domain.job_details import Progress, PullRequestState, StepStatus
from bot.domain.jobs import ACTIVE, ARCHIVED, COMPLETED, FAILED, Job, Problem
from bot.domain.threads import Thread, ThreadState
from bot.slack.rendering.blocks import (
    MAX_TEXT,
    OPEN_PULL_REQUEST,
    SHOW_PROMPT,
    Block,
    Message,
    actions,
    button,
    context_block,
    link_button,
    section,
)
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import ELLIPSIS, link, moment, one_line, opening, person, pieces, quote, safe_url, shorten

_SHOWN_CHARACTERS, _SHOWN_LINES = 300, 4
_MAX_DETAIL = 300
_SHOWN_STEPS, _MAX_STEP = 8, 120
_MARKS = {
    StepStatus.COMPLETED: ":white_check_mark:",
    StepStatus.IN_PROGRESS: ":hourglass_flowing_sand:",
    StepStatus.PENDING: ":white_circle:",
}
_BECAME: Mapping[PullRequestState | None, str] = {
    PullRequestState.MERGED: " (merged)",
    PullRequestState.CLOSED: " (closed)",
}
_FINISHED: Mapping[PullRequestState | None, str] = {
    PullRequestState.MERGED: "Finished: the pull request is merged",
    PullRequestState.CLOSED: "Finished: the pull request is closed",
}

_UNSENT = {
    Problem.OUT_OF_REACH: "Not sent yet: the job API cannot be reached. It is sent as soon as that answers.",
    Problem.RATE_LIMITED: "Not sent yet: the job API's hourly allowance is used up{until}. It is sent as soon as there "
    "is room again.",
    Problem.BUSY: "Not sent yet: the job API is busy{until}. It is sent as soon as there is room again.",
    Problem.FAULTY: "Not sent yet: the job API does not answer properly. It is sent as soon as that does.",
    Problem.NOT_ALLOWED: "Not sent yet: the job API does not let Pagehand in. Please ask {ask}.",
    Problem.REJECTED: "Not started: the request was refused.",
    Problem.UNCERTAIN: "It is not known whether this was started; the thread tells more.",
    Problem.GONE: "The job API does not know this job.",
    Problem.CANNOT_POST: "Not started: Pagehand cannot post here.",
    Problem.STOPPED: "Not started: it was stopped before it was sent.",
    Problem.WITHDRAWN: "Not started: the message that asked for it was deleted.",
}
_BEHIND = {
    Problem.OUT_OF_REACH: "The job API cannot be reached, so this may have changed since.",
    Problem.RATE_LIMITED: "The job API's allowance is used up{until}, so this may have changed since.",
    Problem.BUSY: "The job API is busy{until}, so this may have changed since.",
    Problem.FAULTY: "The job API does not answer properly, so this may have changed since.",
    Problem.NOT_ALLOWED: "The job API does not let Pagehand in, so this may have changed since. Please ask {ask}.",
    Problem.REJECTED: "The last follow-up was refused; the thread tells more.",
    Problem.UNCERTAIN: "It is not known whether the last follow-up arrived; the thread tells more.",
    Problem.CANNOT_POST: "Pagehand cannot post in this channel.",
    Problem.STOPPED: "It was stopped.",
    Problem.WITHDRAWN: "The message that asked for it was deleted.",
}


def card(thread: Thread, message_context: MessageContext) -> Message:
    """The card of a thread as it is now."""
    shown, cut = opening(thread.prompt, characters=_SHOWN_CHARACTERS, lines=_SHOWN_LINES)
    requester, state = f"{person(thread.requester_id)} asked:", state_line(thread.state, message_context)
    prompt = quote(pieces(shown + (ELLIPSIS if cut else ""), 2_500)[0] if shown else ELLIPSIS)
    blocks = [section(f"{requester}\n{prompt}"), section(state)]
    details = _details(thread.state)
    if details:
        blocks.append(context_block(details))
    buttons = _buttons(thread, cut=cut)
    if buttons:
        blocks.append(actions(*buttons))
    text = "\n".join((f"{requester} {shorten(shown, 1_200)}", state, *details))
    return Message(text if len(text) <= MAX_TEXT else f"{requester} {state}", tuple(blocks))


def state_line(state: ThreadState, message_context: MessageContext) -> str:
    """Where the job stands, in honest words: the job API tells a status and nothing more."""
    if state.job is None:
        words = _UNSENT[state.problem] if state.problem else "Waiting to be sent to the agent."
        return _with_reason(_in_words(words, state, message_context), state)
    if state.problem is Problem.GONE:
        return _gone(state.job)
    line = f"*{_status(state)}*"
    if state.problem is None:
        return "\n".join((line, *checklist(state.progress)))
    return _with_reason(f"{line}\n{_in_words(_BEHIND[state.problem], state, message_context)}", state)


def _gone(job: Job) -> str:
    """What is gone is in no state any more; how it ended stays worth knowing."""
    state = "*The job API no longer knows this job*"
    return f"{state}\nWhen last seen: {_status(ThreadState(job))}" if job.ended else state


def _in_words(form: str, state: ThreadState, message_context: MessageContext) -> str:
    until = "" if state.problem_until is None else f", at least until {moment(state.problem_until)}"
    return form.format(ask=message_context.ask, until=until)


def _with_reason(words: str, state: ThreadState) -> str:
    return f"{words}\n{quote(state.problem_text[:_MAX_DETAIL])}" if state.problem and state.problem_text else words


def _status(state: ThreadState) -> str:
    job = state.job
    if job is None:
        return ""
    if state.question and job.status in {ACTIVE, COMPLETED, FAILED}:
        return "The agent asks something: reply in the thread to answer"
    if job.status == COMPLETED and not job.pr_link:
        return "Finished without a pull request"
    if job.status == COMPLETED:
        return _FINISHED.get(state.progress.pull_request, "Finished with a pull request")
    words = {
        ACTIVE: "Active: the agent is at work",
        FAILED: "Failed",
        ARCHIVED: "Archived: no more follow-ups are sent to it",
    }
    return words.get(job.status) or f"Status: {one_line(job.status, 100)}"


def checklist(progress: Progress) -> list[str]:
    """What the agent means to do and how far it is, a line each; of many steps, those about the next one."""
    done = sum(step.status is StepStatus.COMPLETED for step in progress.plan)
    first = max(min(done - 2, len(progress.plan) - _SHOWN_STEPS), 0)
    shown = progress.plan[first : first + _SHOWN_STEPS]
    lines = [f"{_MARKS[step.status]} {one_line(step.title, _MAX_STEP)}" for step in shown]
    if len(shown) < len(progress.plan):
        lines.append(f"_{done} of {len(progress.plan)} steps done_")
    return [*lines, f"_Now: {one_line(progress.activity, _MAX_STEP)}_"] if progress.activity else lines


def _details(state: ThreadState) -> list[str]:
    job = state.job
    if job is None:
        return []
    became = _BECAME.get(state.progress.pull_request, "")
    shown = [
        ("Repository", link(job.repository, _MAX_DETAIL) if job.repository else ""),
        ("Branch", one_line(job.ref, _MAX_DETAIL) if job.ref else ""),
        ("Model", one_line(job.model, _MAX_DETAIL) if job.model else ""),
        ("Pull request", f"{link(job.pr_link, 1_000)}{became}" if job.pr_link else ""),
    ]
    return [f"{name}: {value}" for name, value in shown if value]


def _buttons(thread: Thread, *, cut: bool) -> list[Block]:
    buttons = []
    url = safe_url(thread.state.job.pr_link) if thread.state.job else None
    if url is not None:
        buttons.append(link_button("Open the pull request", OPEN_PULL_REQUEST, url))
    if cut:
        buttons.append(button("Show the whole request", SHOW_PROMPT, thread.id))
    return buttons
