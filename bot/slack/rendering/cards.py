"""The card of a job, which always shows its newest state: a thread's first message, or a reply in another thread."""

from collections.abc import Mapping
from dataclasses import dataclass

from bot.domain.job_details import Progress, PullRequestState, StepStatus
from bot.domain.jobs import ACTIVE, ARCHIVED, COMPLETED, FAILED, Job, Problem
from bot.domain.threads import NO_FOLLOW_UPS, FollowUpCounts, Thread, ThreadState
from bot.slack.rendering.blocks import MAX_TEXT, Message, actions, context_block, section
from bot.slack.rendering.card_buttons import card_buttons, is_undecided
from bot.slack.rendering.card_facts import asked, facts
from bot.slack.rendering.job_report import changed_pages
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import ELLIPSIS, moment, one_line, opening, person, pieces, quote, shorten

_SHOWN_CHARACTERS, _SHOWN_LINES = 300, 4
_MAX_DETAIL = 300
_SHOWN_STEPS, _MAX_STEP = 8, 120
_MARKS = {
    StepStatus.COMPLETED: ":white_check_mark:",
    StepStatus.IN_PROGRESS: ":hourglass_flowing_sand:",
    StepStatus.PENDING: ":white_circle:",
}
_FINISHED: Mapping[PullRequestState | None, str] = {
    PullRequestState.PENDING: "Finished: the pull request is still to be opened",
    PullRequestState.MERGED: "Finished: the pull request is merged",
    PullRequestState.CLOSED: "Finished: the pull request is closed",
}

_WAITING = "Waiting to be sent to the agent"
_UNSENT = {
    Problem.OUT_OF_REACH: ("Not sent yet: the job API cannot be reached", "It is sent as soon as that answers."),
    Problem.RATE_LIMITED: (
        "Not sent yet: the job API's hourly allowance is used up{until}",
        "It is sent as soon as there is room again.",
    ),
    Problem.BUSY: ("Not sent yet: the job API is busy{until}", "It is sent as soon as there is room again."),
    Problem.FAULTY: ("Not sent yet: the job API does not answer properly", "It is sent as soon as that does."),
    Problem.NOT_ALLOWED: ("Not sent yet: the job API does not let Pagehand in", "Please ask {ask}."),
    Problem.REJECTED: ("Not started: the request was refused", ""),
    Problem.UNCERTAIN: ("It is not known whether this was started", "The thread tells more."),
    Problem.GONE: ("The job API does not know this job", ""),
    Problem.CANNOT_POST: ("Not started: Pagehand cannot post here", ""),
    Problem.STOPPED: ("Not started: it was stopped before it was sent", ""),
    Problem.WITHDRAWN: ("Not started: the message that asked for it was deleted", ""),
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


@dataclass(frozen=True)
class _StateWords:
    """Where a job stands: in a few words, what that means, and what the job API said about it (not escaped yet)."""

    headline: str
    meaning: str = ""
    own_words: str = ""


def card(thread: Thread, message_context: MessageContext, follow_ups: FollowUpCounts = NO_FOLLOW_UPS) -> Message:
    """The card of a thread as it is now."""
    words, progress = _words_of_thread(thread, message_context), thread.state.progress
    shown, cut = opening(thread.prompt, characters=_SHOWN_CHARACTERS, lines=_SHOWN_LINES)
    prompt = quote(pieces(shown + (ELLIPSIS if cut else ""), 2_500)[0] if shown else ELLIPSIS)
    known, pages = facts(thread, message_context, follow_ups), changed_pages(progress.changes)
    blocks = [
        section(_with_steps(words, thread.state)),
        section(f"{asked(thread)}\n{prompt}"),
        *([section(pages)] if pages else []),
        context_block(known),
        actions(*card_buttons(thread, several_projects=message_context.several_projects)),
    ]
    return Message(_text(thread, words, shown, [*known, *_sentences(pages)]), tuple(blocks))


def status_text(thread: Thread, message_context: MessageContext, follow_ups: FollowUpCounts) -> str:
    """The same facts as the card's, as text of one paragraph."""
    words = _words_of_thread(thread, message_context)
    return "\n".join([_with_steps(words, thread.state), *facts(thread, message_context, follow_ups)])


def state_line(state: ThreadState, message_context: MessageContext) -> str:
    """Where the job stands, in honest words: the job API tells a status and nothing more."""
    return _with_steps(_words(state, message_context), state)


def _with_steps(words: _StateWords, state: ThreadState) -> str:
    steps = checklist(state.progress) if state.job is not None and state.problem is None else []
    own = [quote(words.own_words[:_MAX_DETAIL])] if words.own_words else []
    return "\n".join([f"*{words.headline}*", *([words.meaning] if words.meaning else []), *own, *steps])


def _text(thread: Thread, words: _StateWords, prompt: str, rest: list[str]) -> str:
    """What notifications and screen readers get: sentences, the state first; of the rest what there is room for."""
    state = thread.state
    own = f"The job API said: {one_line(words.own_words, _MAX_DETAIL)}" if words.own_words else ""
    steps = _progress(state.progress) if state.job is not None and state.problem is None else ""
    said = " ".join(part for part in (f"{words.headline}.", words.meaning, own, steps) if part)
    text = f"{said}\n{asked(thread)} {shorten(prompt, 1_200)}\n"
    for sentence in rest:
        if len(text) + len(sentence) + 2 <= MAX_TEXT:
            text += f"{sentence.rstrip('.')}. "
    return text.rstrip(" ")


def _sentences(pages: str) -> list[str]:
    """The changed pages as one sentence."""
    title, *listed = pages.split("\n")
    return [f"{title} {', '.join(line.removeprefix('• ') for line in listed)}"] if listed else [title] * bool(title)


def _words_of_thread(thread: Thread, message_context: MessageContext) -> _StateWords:
    state = thread.state
    if message_context.several_projects and is_undecided(thread):
        return _StateWords(f"Waiting for {person(thread.requester_id)} to choose the project")
    return _words(state, message_context)


def _words(state: ThreadState, message_context: MessageContext) -> _StateWords:
    own = state.problem_text if state.problem else ""
    if state.job is None:
        headline, meaning = _UNSENT[state.problem] if state.problem else (_WAITING, "")
        until, whom = _in_words(headline, state, message_context), _in_words(meaning, state, message_context)
        return _StateWords(until, whom, own)
    if state.problem is Problem.GONE:
        return _gone(state.job)
    meaning = _in_words(_BEHIND[state.problem], state, message_context) if state.problem else ""
    return _StateWords(_status(state), meaning, own)


def _gone(job: Job) -> _StateWords:
    """What is gone is in no state any more; how it ended stays worth knowing."""
    last = f"When last seen: {_status(ThreadState(job))}." if job.ended else ""
    return _StateWords("The job API no longer knows this job", last)


def _in_words(form: str, state: ThreadState, message_context: MessageContext) -> str:
    until = "" if state.problem_until is None else f", at least until {moment(state.problem_until)}"
    return form.format(ask=message_context.ask, until=until)


def _status(state: ThreadState) -> str:
    job = state.job
    if job is None:
        return ""
    if state.stopped_by and job.status != ARCHIVED:
        return _stopped(state, job)
    if state.question and job.status in {ACTIVE, COMPLETED, FAILED}:
        return "The agent asks something: reply in the thread to answer"
    if job.status == COMPLETED and not (job.pr_link or state.progress.pull_request is PullRequestState.PENDING):
        return "Finished without a pull request"
    if job.status == COMPLETED:
        return _FINISHED.get(state.progress.pull_request, "Finished with a pull request")
    words = {
        ACTIVE: "Active: the agent is at work",
        FAILED: "Failed",
        ARCHIVED: "Archived: no more follow-ups are sent to it",
    }
    return words.get(job.status) or f"Status: {one_line(job.status, 100)}"


def _stopped(state: ThreadState, job: Job) -> str:
    who = person(state.stopped_by)
    if not job.ended:
        return f"Stopping, as {who} asked"
    return f"Stopped by {who}" + (", with a pull request" if job.pr_link else "")


def checklist(progress: Progress) -> list[str]:
    """What the agent means to do and how far it is, a line each; of many steps, those about the next one."""
    done = _done(progress)
    first = max(min(done - 2, len(progress.plan) - _SHOWN_STEPS), 0)
    shown = progress.plan[first : first + _SHOWN_STEPS]
    lines = [f"{_MARKS[step.status]} {one_line(step.title, _MAX_STEP)}" for step in shown]
    if len(shown) < len(progress.plan):
        lines.append(f"_{done} of {len(progress.plan)} steps done_")
    return [*lines, f"_Now: {one_line(progress.activity, _MAX_STEP)}_"] if progress.activity else lines


def _progress(progress: Progress) -> str:
    """How far the agent is, in sentences."""
    told = [f"{_done(progress)} of {len(progress.plan)} steps are done."] if progress.plan else []
    for name, status in (("At work on", StepStatus.IN_PROGRESS), ("Next", StepStatus.PENDING)):
        step = next((step for step in progress.plan if step.status is status), None)
        told += [f"{name}: {one_line(step.title, _MAX_STEP)}."] if step else []
    return " ".join([*told, *([f"Now: {one_line(progress.activity, _MAX_STEP)}."] if progress.activity else [])])


def _done(progress: Progress) -> int:
    return sum(step.status is StepStatus.COMPLETED for step in progress.plan)
