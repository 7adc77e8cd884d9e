"""What the card says: a job's state, its facts, and its progress. A headline has no full stop."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from bot.domain.jobs.job import ACTIVE, ARCHIVED, COMPLETED, FAILED, Problem, Progress
from bot.domain.projects import ProjectReason
from bot.domain.pull_requests import FollowedPullRequest
from bot.domain.requests.request import WayIn
from bot.domain.threads.thread import (
    Failure,
    FollowUpCounts,
    ProposalEnd,
    Thread,
    ThreadState,
    shown_state,
    waits_for_start,
)
from bot.jobapi.models import Job, Mode, PlanStep, PullRequestState, StepStatus
from bot.notices.pull_requests import state_words
from bot.notices.said import NOTHING, Markup, Renderer, joined

_MAX_FACT, _MAX_LINK, _MAX_DETAIL = 300, 1_000, 300
_SHOWN_STEPS, _MAX_STEP = 8, 120


def is_undecided(thread: Thread) -> bool:
    """Whether the job waits for the choice of its project."""
    return thread.options.project_reason is None and thread.state.job is None and thread.state.failure.problem is None


_ASKED_BY: Mapping[WayIn, str] = {
    WayIn.SHORTCUT: "{who} handed over a message and asked:",
    WayIn.MENTION: "{who} mentioned Pagehand and asked:",
    WayIn.DIRECT_MESSAGE: "{who} wrote to Pagehand and asked:",
    WayIn.REPLY: "{who} started another job in this thread and asked:",
    WayIn.RETRY: "{who} tried this again, as first asked:",
    WayIn.SWITCH: "{who} moved this to another project, as first asked:",
}


def asked(show: Renderer, thread: Thread) -> Markup:
    """Who asked, and how."""
    return show(_ASKED_BY.get(thread.options.way_in, "{who} asked:"), who=show.person(thread.requester_id))


# The state: a headline, its meaning, and the job API's own words about it.

_UNSENT: Mapping[Problem, str] = {
    Problem.OUT_OF_REACH: "Not sent yet: I can't reach the agent",
    Problem.RATE_LIMITED: "Not sent yet: the agent's hourly limit is used up{until}",
    Problem.BUSY: "Not sent yet: the agent is busy{until}",
    Problem.FAULTY: "Not sent yet: the agent isn't answering properly",
    Problem.NOT_ALLOWED: "Not sent yet: the agent doesn't let me in",
    Problem.REJECTED: "Not started: the request was refused",
    Problem.UNCERTAIN: "I can't tell if this started",
    Problem.GONE: "The agent doesn't know this job",
    Problem.CANNOT_POST: "Not started: I can't post here",
    Problem.STOPPED: "Not started: it was stopped before it was sent",
    Problem.WITHDRAWN: "Not started: the message that asked for it was deleted",
}
_UNSENT_MEANING: Mapping[Problem, str] = {
    Problem.OUT_OF_REACH: "It goes out as soon as the agent is back.",
    Problem.RATE_LIMITED: "It goes out as soon as there's room again.",
    Problem.BUSY: "It goes out when the agent has time again.",
    Problem.FAULTY: "It goes out when the agent answers again.",
    Problem.NOT_ALLOWED: "Please ask {ask} to fix that.",
    Problem.UNCERTAIN: "The thread says what to do.",
}
_BEHIND: Mapping[Problem, str] = {
    Problem.OUT_OF_REACH: "I can't reach the agent, so this may be out of date.",
    Problem.RATE_LIMITED: "The agent's limit is used up{until}, so this may be out of date.",
    Problem.BUSY: "The agent is busy{until}, so this may be out of date.",
    Problem.FAULTY: "The agent isn't answering properly, so this may be out of date.",
    Problem.NOT_ALLOWED: "The agent doesn't let me in, so this may be out of date. Please ask {ask} to fix that.",
    Problem.REJECTED: "The last follow-up was refused. The thread says why.",
    Problem.UNCERTAIN: "I can't tell if the last follow-up arrived. The thread says what to do.",
    Problem.CANNOT_POST: "I can't post in this channel.",
    Problem.STOPPED: "It was stopped.",
    Problem.WITHDRAWN: "The message that asked for it was deleted.",
}
_STATUSES: Mapping[str, str] = {
    ACTIVE: "Active: the agent is at work",
    FAILED: "Failed",
    ARCHIVED: "Archived: follow-ups are no longer sent",
}
_FINISHED: Mapping[PullRequestState | None, str] = {
    PullRequestState.PENDING: "Finished: the pull request is still to be opened",
    PullRequestState.MERGED: "Finished: the pull request is merged",
    PullRequestState.CLOSED: "Finished: the pull request is closed",
}


@dataclass(frozen=True)
class CardState:
    """The state of a job: a headline, its meaning, and the job API's own words about it (not escaped yet)."""

    marks: ClassVar[Mapping[StepStatus, str]] = {
        StepStatus.COMPLETED: ":white_check_mark: {step}",
        StepStatus.IN_PROGRESS: ":hourglass_flowing_sand: {step}",
        StepStatus.PENDING: ":white_circle: {step}",
    }
    headline: Markup
    meaning: Markup = NOTHING
    own_words: str = ""
    progress: Progress | None = None

    def shown(self, show: Renderer, *, steps_below: bool = False) -> Markup:
        """Returns it with the steps of the agent's plan, a line for each, unless they are shown below."""
        own = [show.quote(self.own_words, _MAX_DETAIL, _MAX_DETAIL)] if self.own_words else []
        steps = checklist(show, self.progress, steps_below=steps_below) if self.progress else []
        meaning = [self.meaning] if self.meaning else []
        return joined([show("*{headline}*", headline=self.headline), *meaning, *own, *steps], "\n")

    def spoken(self, show: Renderer) -> Markup:
        """Returns it in sentences, for notifications and screen readers."""
        said = show.line(self.own_words, _MAX_DETAIL)
        own = show("The agent said: {words}", words=said) if said else NOTHING
        steps = _spoken_progress(show, self.progress) if self.progress else NOTHING
        told = (show("{headline}.", headline=self.headline), self.meaning, own, steps)
        return joined(part for part in told if part)


def state_of(show: Renderer, thread: Thread, *, several_projects: bool) -> CardState:
    """Returns the state of a thread's job."""
    if several_projects and is_undecided(thread):
        who = show.person(thread.requester_id)
        return CardState(show("Waiting for {who} to choose the project", who=who))
    return job_state(show, shown_state(thread))


def job_state(show: Renderer, state: ThreadState) -> CardState:
    """Returns the state of a job, claiming no more than the status that the job API reports."""
    job, problem, until = state.job, state.failure.problem, _until(show, state.failure)
    own = state.failure.problem_text if problem else ""
    if job is None:
        if problem is None:
            return CardState(show("Waiting to be sent to the agent"))
        return CardState(show(_UNSENT[problem], until=until), show(_UNSENT_MEANING.get(problem, "")), own)
    if problem is Problem.GONE:  # it has no state, but how it ended is still worth showing
        last = show("When last seen: {status}.", status=_status(show, ThreadState(job), job)) if job.ended else NOTHING
        return CardState(show("The agent no longer has this job"), last)
    meaning = show(_BEHIND[problem], until=until) if problem else NOTHING
    return CardState(_status(show, state, job), meaning, own, None if problem else state.work.progress)


def _until(show: Renderer, failure: Failure) -> Markup:
    at = failure.problem_until
    return NOTHING if at is None else show(", at least until {time}", time=show.moment(at))


def _status(show: Renderer, state: ThreadState, job: Job) -> Markup:
    who = show.person(state.people.stopped_by)
    if who and job.status != ARCHIVED:
        if not job.ended:
            return show("Stopping, as {who} asked", who=who)
        return show("Stopped by {who}, with a pull request" if job.pr_link else "Stopped by {who}", who=who)
    if state.work.question and job.status in {ACTIVE, COMPLETED, FAILED}:
        return show("The agent has a question: reply in the thread to answer")
    if job.status == COMPLETED:
        return _finished(show, state, job)
    return show(_STATUSES.get(job.status, "Status: {status}"), status=show.line(job.status))


def _finished(show: Renderer, state: ThreadState, job: Job) -> Markup:
    became, planning = state.work.progress.pull_request, state.planning
    if waits_for_start(state) and planning.proposal_untold:
        return show("A plan waits, and comes after `!unmute`")
    if waits_for_start(state):
        return show("A plan waits: press Start below it in the thread, or reply to change it")
    if job.pr_link or became is PullRequestState.PENDING:
        return show(_FINISHED.get(became, "Finished with a pull request"))
    if state.work.progress.is_answer:
        return show("Answered")
    was_planned = planning.proposal_id and planning.proposal_end is not ProposalEnd.STARTED
    return show("Finished: the plan was not started" if was_planned else "Finished without a pull request")


def next_steps(progress: Progress, most: int) -> list[tuple[int, PlanStep]]:
    """Returns at most so many steps of the agent's plan with their numbers: those around the next one."""
    first = max(min(_done(progress) - 2, len(progress.plan) - most), 0)
    return list(enumerate(progress.plan, start=1))[first : first + most]


def steps_done(show: Renderer, progress: Progress) -> Markup:
    """Returns how much of the plan is done."""
    return show("{done} of {count} steps done", done=_done(progress), count=len(progress.plan))


def checklist(show: Renderer, progress: Progress, *, steps_below: bool = False) -> list[Markup]:
    """Returns the agent's plan with its progress, a line per step; of many steps, those around the next one."""
    shown = [] if steps_below else next_steps(progress, _SHOWN_STEPS)
    lines = [show(CardState.marks[step.status], step=show.line(step.title, _MAX_STEP)) for _, step in shown]
    if shown and len(shown) < len(progress.plan):
        lines.append(show("_{told}_", told=steps_done(show, progress)))
    if progress.activity:
        lines.append(show("_Now: {activity}_", activity=show.line(progress.activity, _MAX_STEP)))
    return lines


def _spoken_progress(show: Renderer, progress: Progress) -> Markup:
    done, count = _done(progress), len(progress.plan)
    told = [show("{done} of {count} steps are done.", done=done, count=count)] if progress.plan else []
    for status, words in ((StepStatus.IN_PROGRESS, "At work on: {step}."), (StepStatus.PENDING, "Next: {step}.")):
        first = next((step.title for step in progress.plan if step.status is status), None)
        told += [] if first is None else [show(words, step=show.line(first, _MAX_STEP))]
    if progress.activity:
        told.append(show("Now: {activity}.", activity=show.line(progress.activity, _MAX_STEP)))
    return joined(told)


def _done(progress: Progress) -> int:
    return sum(step.status is StepStatus.COMPLETED for step in progress.plan)


# The facts: who, which project, where, since when, what was sent, what it changes.

_PROJECT_REASONS: Mapping[ProjectReason, str] = {
    ProjectReason.ONLY_ONE: "the only one",
    ProjectReason.SAID: "named in the request",
    ProjectReason.THREAD: "as for the job before in this thread",
    ProjectReason.CHANNEL: "this channel's",
    ProjectReason.WORDS: "by words in the request",
    ProjectReason.DEFAULT: "the default of {who}",
    ProjectReason.CHOSEN: "chosen by {who}",
}
_WAIT_FOR: Mapping[Problem | None, str] = {
    Problem.OUT_OF_REACH: "{count} waiting for the agent to be back",
    Problem.FAULTY: "{count} waiting for the agent to answer properly again",
    Problem.NOT_ALLOWED: "{count} waiting for the agent to let me in again",
    Problem.RATE_LIMITED: "{count} waiting for the agent's hourly limit{until}",
    Problem.BUSY: "{count} waiting for the agent, which is busy{until}",
    Problem.UNCERTAIN: "{count} waiting until it's clear that this started",
}
_MODES: Mapping[Mode, str] = {Mode.PLAN: "Mode: plan first", Mode.ASK: "Mode: only an answer"}
_UNITS = (("{count} day", "{count} days"), ("{count} hour", "{count} hours"), ("{count} minute", "{count} minutes"))


def facts(show: Renderer, thread: Thread, follow_ups: FollowUpCounts, *, several_projects: bool) -> list[Markup]:
    """The known facts, each a short text; at most 10."""
    state, job, muted_by = shown_state(thread), thread.state.job, thread.state.people.muted_by
    muted = "Muted: by {who}; replies aren't sent, and only failures and pull requests are posted"
    told = [
        _project(show, thread) if several_projects else NOTHING,
        *(_source(show, job) if job else []),
        _agent(show, thread),
        link_fact(show, job, state.work.progress, thread.pull_request) if job else NOTHING,
        show("Asked: {time}", time=show.day_and_time(thread.created_at)),
        _work(show, job, state) if job else NOTHING,
        _kept(show, state.work.progress.partial_files),
        _counted(show, state, follow_ups),
        show(muted, who=show.person(muted_by)) if muted_by else NOTHING,
    ]
    return [fact for fact in told if fact]


def _project(show: Renderer, thread: Thread) -> Markup:
    reason = thread.options.project_reason
    if reason is None or not thread.project:
        return NOTHING
    why = show(_PROJECT_REASONS[reason], who=show.person(thread.requester_id))
    return show("Project: {name} ({why})", name=show.line(thread.project, _MAX_FACT), why=why)


def _source(show: Renderer, job: Job) -> list[Markup]:
    return [
        show("Repository: {name}", name=show.link(job.repository, _MAX_FACT)) if job.repository else NOTHING,
        show("Branch: {name}", name=show.line(job.ref, _MAX_FACT)) if job.ref else NOTHING,
    ]


def _agent(show: Renderer, thread: Thread) -> Markup:
    """Returns how the agent works, as one of the facts: its mode, unless it changes pages, its model and effort."""
    job, chosen = thread.state.job, thread.options.agent
    model = chosen.model or (job.model if job else None) or ""
    told = [
        show(_MODES[thread.mode]) if thread.mode in _MODES else NOTHING,
        show("Model: {name}", name=show.line(model, _MAX_FACT)) if model else NOTHING,
        show("Effort: {level}", level=show.line(chosen.effort, _MAX_FACT)) if chosen.effort else NOTHING,
    ]
    return joined([each for each in told if each], ", ")


def link_fact(show: Renderer, job: Job, progress: Progress, followed: FollowedPullRequest | None) -> Markup:
    """Returns the pull request's link and state, as one of the facts; empty if there is none."""
    became, why = progress.pull_request, show.line(progress.why_pending, _MAX_FACT)
    if became is PullRequestState.PENDING:
        return show("Pull request: pending: {why}" if why else "Pull request: pending", why=why)
    if not job.pr_link:
        return NOTHING
    pull = followed.found.pull_request if followed and followed.found else None
    words, by = state_words(pull.state if pull else became, pull), show.line((pull and pull.ended_by) or "")
    return show(f"Pull request: {{link}}{words}", link=show.link(job.pr_link, _MAX_LINK), by=by)


def _kept(show: Renderer, files: int) -> Markup:
    """Returns in how many files the work of a failed job is kept."""
    if not files:
        return NOTHING
    words = "Kept: what it changed in {count} files before it failed"
    return show("Kept: what it changed in 1 file before it failed" if files == 1 else words, count=files)


def _work(show: Renderer, job: Job, state: ThreadState) -> Markup:
    """Returns since when the agent has been working or, once it has ended, for how long it worked."""
    began, ended = state.work.work_began_at, state.work.work_ended_at
    if state.failure.problem is Problem.GONE:
        return NOTHING
    if not job.ended:
        return show("At work since: {time}", time=show.day_and_time(began)) if began else NOTHING
    if not ended:
        return NOTHING
    words = "Ended: {time} after {duration}" if began else "Ended: {time}"
    return show(words, time=show.day_and_time(ended), duration=duration(show, ended - began))


def _counted(show: Renderer, state: ThreadState, follow_ups: FollowUpCounts) -> Markup:
    """Returns how many follow-ups were sent, and how many wait for what."""
    counts = [show("{count} sent", count=follow_ups.sent)] if follow_ups.sent else []
    if follow_ups.waiting:
        begins = state.job is None and state.failure.problem is None
        otherwise = "{count} waiting for the job to begin" if begins else "{count} waiting"
        words = _WAIT_FOR.get(state.failure.problem, otherwise)
        counts.append(show(words, count=follow_ups.waiting, until=_until(show, state.failure)))
    return show("Follow-ups: {counts}", counts=joined(counts, ", ")) if counts else NOTHING


def duration(show: Renderer, seconds: float) -> Markup:
    """Returns a duration in its two largest units, rounded down."""
    minutes = int(seconds // 60)
    if minutes < 1:
        return show("less than a minute")
    counts = (minutes // 1_440, minutes // 60 % 24, minutes % 60)
    units = zip(counts, _UNITS, strict=True)
    counted = [show(one if count == 1 else many, count=count) for count, (one, many) in units if count]
    return show("{one} and {other}", one=counted[0], other=counted[1]) if len(counted) > 1 else counted[0]
