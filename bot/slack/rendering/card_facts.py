"""The facts on a card beside the job's state: who, which project, where, since when, what was sent, what it changes."""

from collections.abc import Mapping

from bot.domain.job_details import Progress, PullRequestState
from bot.domain.jobs import Job, Problem
from bot.domain.projects import ProjectReason
from bot.domain.requests import WayIn
from bot.domain.threads import FollowUpCounts, Thread, ThreadState
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import day_and_time, duration, link, moment, one_line, person

_MAX_FACT, _MAX_LINK = 300, 1_000
_BECAME: Mapping[PullRequestState | None, str] = {
    PullRequestState.MERGED: " (merged)",
    PullRequestState.CLOSED: " (closed)",
}
_ASKED = {
    WayIn.SHORTCUT: "handed a message over and asked",
    WayIn.MENTION: "mentioned Pagehand and asked",
    WayIn.DIRECT_MESSAGE: "wrote to Pagehand and asked",
    WayIn.REPLY: "wanted another job in this thread and asked",
    WayIn.RETRY: "wanted this tried again, as it was asked",
    WayIn.SWITCH: "wanted this done for another project, as it was asked",
}
_CHOSEN = {
    ProjectReason.ONLY_ONE: "the only one",
    ProjectReason.SAID: "named in the request",
    ProjectReason.THREAD: "as for the job before in this thread",
    ProjectReason.CHANNEL: "this channel's",
    ProjectReason.WORDS: "by words of the request",
    ProjectReason.DEFAULT: "the default of {who}",
    ProjectReason.CHOSEN: "chosen by {who}",
}
_WAITING_FOR = {
    Problem.OUT_OF_REACH: " for the job API to be reached again",
    Problem.FAULTY: " for the job API to answer properly again",
    Problem.NOT_ALLOWED: " for the job API to let Pagehand in again",
    Problem.RATE_LIMITED: " for the job API's hourly allowance{until}",
    Problem.BUSY: " for the job API, which is busy{until}",
}


def asked(thread: Thread) -> str:
    """Who asked, and how."""
    return f"{person(thread.requester_id)} {_ASKED.get(thread.options.way_in, 'asked')}:"


def facts(thread: Thread, message_context: MessageContext, follow_ups: FollowUpCounts) -> list[str]:
    """What is known, a short text each; at most 9."""
    shown = [
        ("Project", _project(thread) if message_context.several_projects else ""),
        *_of_job(thread.state.job, thread.state),
        ("Asked", day_and_time(thread.created_at)),
        *_work(thread.state),
        ("Follow-ups", _counted(thread.state, follow_ups)),
        ("Muted", _muted(thread.state)),
    ]
    return [f"{name}: {value}" for name, value in shown if value]


def _project(thread: Thread) -> str:
    reason = thread.options.project_reason
    if reason is None or not thread.project:
        return ""
    return f"{one_line(thread.project, _MAX_FACT)} ({_CHOSEN[reason].format(who=person(thread.requester_id))})"


def _of_job(job: Job | None, state: ThreadState) -> list[tuple[str, str]]:
    if job is None:
        return []
    became = _BECAME.get(state.progress.pull_request, "")
    pull_request = f"{link(job.pr_link, _MAX_LINK)}{became}" if job.pr_link else ""
    return [
        ("Repository", link(job.repository, _MAX_FACT) if job.repository else ""),
        ("Branch", one_line(job.ref, _MAX_FACT) if job.ref else ""),
        ("Model", one_line(job.model, _MAX_FACT) if job.model else ""),
        ("Pull request", _pending(state.progress) or pull_request),
    ]


def _pending(progress: Progress) -> str:
    """That there is none yet, and why."""
    if progress.pull_request is not PullRequestState.PENDING:
        return ""
    return f"pending: {one_line(progress.why_pending, _MAX_FACT)}" if progress.why_pending else "pending"


def _work(state: ThreadState) -> list[tuple[str, str]]:
    """Since when the agent is at work; once that has ended, for how long it was."""
    job, began, ended = state.job, state.work_began_at, state.work_ended_at
    if job is None or state.problem is Problem.GONE or not (began or ended):
        return []
    if not job.ended:
        return [("At work since", day_and_time(began))] if began else []
    if not ended:
        return []
    took = f" after {duration(ended - began)}" if began else ""
    return [("Ended", f"{day_and_time(ended)}{took}")]


def _counted(state: ThreadState, follow_ups: FollowUpCounts) -> str:
    """How many follow-ups went out, and how many wait, with what for."""
    waiting = f"{follow_ups.waiting} waiting{_for_what(state)}" if follow_ups.waiting else ""
    sent = f"{follow_ups.sent} sent" if follow_ups.sent else ""
    return ", ".join(part for part in (sent, waiting) if part)


def _for_what(state: ThreadState) -> str:
    until = "" if state.problem_until is None else f", at least until {moment(state.problem_until)}"
    if state.problem in _WAITING_FOR:
        return _WAITING_FOR[state.problem].format(until=until)
    return " for the job to begin" if state.job is None and state.problem is None else ""


def _muted(state: ThreadState) -> str:
    if not state.muted_by:
        return ""
    return f"by {person(state.muted_by)}; replies are not sent, and only failures and pull requests are told"
