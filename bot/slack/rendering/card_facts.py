"""The facts on a card beside the job's state: who, which project, where, since when, what was sent, what it changes."""

from bot.domain.jobs.details import Progress, PullRequestState
from bot.domain.jobs.job import Job, Problem
from bot.domain.threads.thread import FollowUpCounts, Thread, ThreadState
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.text import NOTHING, Markup, day_and_time, joined, link, moment, one_line, person
from bot.slack.rendering.words import card as words

_MAX_FACT, _MAX_LINK = 300, 1_000


def asked(thread: Thread) -> Markup:
    """Who asked, and how."""
    who, way_in = person(thread.requester_id), thread.options.way_in
    return words.ASKED_BY[way_in](who=who) if way_in in words.ASKED_BY else words.ASKED(who=who)


def facts(thread: Thread, message_context: MessageContext, follow_ups: FollowUpCounts) -> list[Markup]:
    """What is known, a short text each; at most 10."""
    state = thread.state
    return [
        *(_project(thread) if message_context.several_projects else []),
        *(_of_job(state.job, state) if state.job else []),
        words.ASKED_AT(time=day_and_time(thread.created_at)),
        *(_work(state.job, state) if state.job else []),
        *_kept(state.progress.partial_files),
        *_counted(state, follow_ups),
        *([words.MUTED(who=person(state.muted_by))] if state.muted_by else []),
    ]


def _project(thread: Thread) -> list[Markup]:
    reason = thread.options.project_reason
    if reason is None or not thread.project:
        return []
    why = words.PROJECT_REASONS[reason](who=person(thread.requester_id))
    return [words.PROJECT(name=one_line(thread.project, _MAX_FACT), why=why)]


def _of_job(job: Job, state: ThreadState) -> list[Markup]:
    return [
        *([words.REPOSITORY(name=link(job.repository, _MAX_FACT))] if job.repository else []),
        *([words.BRANCH(name=one_line(job.ref, _MAX_FACT))] if job.ref else []),
        *([words.MODEL(name=one_line(job.model, _MAX_FACT))] if job.model else []),
        *_pull_request(job, state.progress),
    ]


def _pull_request(job: Job, progress: Progress) -> list[Markup]:
    became, why = progress.pull_request, one_line(progress.why_pending, _MAX_FACT)
    if became is PullRequestState.PENDING:
        return [words.PULL_REQUEST_PENDING_BECAUSE(why=why) if why else words.PULL_REQUEST_PENDING]
    if not job.pr_link:
        return []
    shown = link(job.pr_link, _MAX_LINK)
    if became in words.PULL_REQUEST_THAT_IS:
        return [words.PULL_REQUEST_THAT_IS[became](link=shown)]
    return [words.PULL_REQUEST(link=shown)]


def _kept(files: int) -> list[Markup]:
    """In how many files the work of a failure is kept."""
    return [words.ONE_FILE_KEPT if files == 1 else words.FILES_KEPT(count=files)] if files else []


def _work(job: Job, state: ThreadState) -> list[Markup]:
    """Since when the agent is at work; once that has ended, for how long it was."""
    began, ended = state.work_began_at, state.work_ended_at
    if state.problem is Problem.GONE:
        return []
    if not job.ended:
        return [words.AT_WORK_SINCE(time=day_and_time(began))] if began else []
    if not ended:
        return []
    if not began:
        return [words.ENDED(time=day_and_time(ended))]
    return [words.ENDED_AFTER(time=day_and_time(ended), duration=duration(ended - began))]


def _counted(state: ThreadState, follow_ups: FollowUpCounts) -> list[Markup]:
    """How many follow-ups went out, and how many wait, with what for."""
    counts = [
        *([words.SENT(count=follow_ups.sent)] if follow_ups.sent else []),
        *([_waiting(state, follow_ups.waiting)] if follow_ups.waiting else []),
    ]
    return [words.FOLLOW_UPS(counts=joined(counts, ", "))] if counts else []


def _waiting(state: ThreadState, count: int) -> Markup:
    if state.problem in words.WAIT_FOR:
        until = NOTHING if state.problem_until is None else words.AT_LEAST_UNTIL(time=moment(state.problem_until))
        return words.WAIT_FOR[state.problem](count=count, until=until)
    begins = state.job is None and state.problem is None
    return words.WAIT_FOR_START(count=count) if begins else words.WAIT(count=count)


def duration(seconds: float) -> Markup:
    """Returns a length of time in words, rounded down; its two largest units."""
    minutes = int(seconds // 60)
    if minutes < 1:
        return words.LESS_THAN_A_MINUTE
    counts = (minutes // 1_440, minutes // 60 % 24, minutes % 60)
    units = zip(counts, words.UNITS, strict=True)
    counted = [(one if count == 1 else many)(count=count) for count, (one, many) in units if count]
    return words.TWO_UNITS(larger=counted[0], smaller=counted[1]) if len(counted) > 1 else counted[0]
