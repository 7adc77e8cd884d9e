"""The card of a job, which always shows its newest state: a thread's first message, or a reply in another thread.
Its facts: who, which project, where, since when, what was sent, what it changes.
"""

from dataclasses import dataclass

from bot.domain.jobs.details import Progress, PullRequestState, StepStatus
from bot.domain.jobs.job import ACTIVE, ARCHIVED, COMPLETED, FAILED, Job, Problem
from bot.domain.threads.thread import NO_FOLLOW_UPS, Failure, FollowUpCounts, Thread, ThreadState
from bot.notices.job import changed_pages
from bot.notices.said import ELLIPSIS, NOTHING, Markup, joined
from bot.slack.rendering.blocks import MAX_TEXT, ChatMessage, actions, context_block, section
from bot.slack.rendering.card_buttons import card_buttons, is_undecided
from bot.slack.rendering.message_context import MessageContext, SlackRenderer
from bot.slack.rendering.text import day_and_time, link, moment, one_line, opening, person, pieces, quote, shorten
from bot.slack.rendering.words import card as words

_MAX_FACT, _MAX_LINK = 300, 1_000


def asked(thread: Thread) -> Markup:
    """Who asked, and how."""
    who, way_in = person(thread.requester_id), thread.options.way_in
    return words.ASKED_BY[way_in](who=who) if way_in in words.ASKED_BY else words.ASKED(who=who)


def facts(thread: Thread, message_context: MessageContext, follow_ups: FollowUpCounts) -> list[Markup]:
    """The known facts, each a short text; at most 10."""
    state = thread.state
    return [
        *(_project(thread) if message_context.several_projects else []),
        *(_of_job(state.job, state) if state.job else []),
        words.ASKED_AT(time=day_and_time(thread.created_at)),
        *(_work(state.job, state) if state.job else []),
        *_kept(state.work.progress.partial_files),
        *_counted(state, follow_ups),
        *([words.MUTED(who=person(state.people.muted_by))] if state.people.muted_by else []),
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
        *_pull_request(job, state.work.progress),
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
    """Returns in how many files the work of a failed job is kept."""
    return [words.ONE_FILE_KEPT if files == 1 else words.FILES_KEPT(count=files)] if files else []


def _work(job: Job, state: ThreadState) -> list[Markup]:
    """Returns since when the agent has been working or, once it has ended, for how long it worked."""
    began, ended = state.work.work_began_at, state.work.work_ended_at
    if state.failure.problem is Problem.GONE:
        return []
    if not job.ended:
        return [words.AT_WORK_SINCE(time=day_and_time(began))] if began else []
    if not ended:
        return []
    if not began:
        return [words.ENDED(time=day_and_time(ended))]
    return [words.ENDED_AFTER(time=day_and_time(ended), duration=duration(ended - began))]


def _counted(state: ThreadState, follow_ups: FollowUpCounts) -> list[Markup]:
    """Returns how many follow-ups were sent, and how many wait for what."""
    counts = [
        *([words.SENT(count=follow_ups.sent)] if follow_ups.sent else []),
        *([_waiting(state, follow_ups.waiting)] if follow_ups.waiting else []),
    ]
    return [words.FOLLOW_UPS(counts=joined(counts, ", "))] if counts else []


def _waiting(state: ThreadState, count: int) -> Markup:
    if state.failure.problem in words.WAIT_FOR:
        until = _until(state.failure)
        return words.WAIT_FOR[state.failure.problem](count=count, until=until)
    begins = state.job is None and state.failure.problem is None
    return words.WAIT_FOR_START(count=count) if begins else words.WAIT(count=count)


def duration(seconds: float) -> Markup:
    """Returns a duration in its two largest units, rounded down."""
    minutes = int(seconds // 60)
    if minutes < 1:
        return words.LESS_THAN_A_MINUTE
    counts = (minutes // 1_440, minutes // 60 % 24, minutes % 60)
    units = zip(counts, words.UNITS, strict=True)
    counted = [(one if count == 1 else many)(count=count) for count, (one, many) in units if count]
    return words.TWO_UNITS(larger=counted[0], smaller=counted[1]) if len(counted) > 1 else counted[0]


_SHOWN_CHARACTERS, _SHOWN_LINES = 300, 4
_MAX_DETAIL = 300
_SHOWN_STEPS, _MAX_STEP = 8, 120
_MARKS = {
    StepStatus.COMPLETED: ":white_check_mark:",
    StepStatus.IN_PROGRESS: ":hourglass_flowing_sand:",
    StepStatus.PENDING: ":white_circle:",
}


@dataclass(frozen=True)
class _StateWords:
    """The state of a job: a headline, its meaning, and the job API's own words about it (not escaped yet)."""

    headline: Markup
    meaning: Markup = NOTHING
    own_words: str = ""


def card(thread: Thread, message_context: MessageContext, follow_ups: FollowUpCounts = NO_FOLLOW_UPS) -> ChatMessage:
    """The card of a thread as it is now."""
    state, progress = _state_words(thread, message_context), thread.state.work.progress
    shown, cut = opening(thread.prompt, characters=_SHOWN_CHARACTERS, lines=_SHOWN_LINES)
    prompt = quote(pieces(shown + (ELLIPSIS if cut else ""), 2_500)[0] if shown else ELLIPSIS)
    known, pages = (
        facts(thread, message_context, follow_ups),
        changed_pages(SlackRenderer(message_context), progress.changes),
    )
    blocks = [
        section(_with_steps(state, thread.state)),
        section(f"{asked(thread)}\n{prompt}"),
        *([section(pages)] if pages else []),
        context_block(known),
        actions(*card_buttons(thread, several_projects=message_context.several_projects)),
    ]
    return ChatMessage(_text(thread, state, shown, [*known, *_sentences(pages)]), tuple(blocks))


def status_text(thread: Thread, message_context: MessageContext, follow_ups: FollowUpCounts) -> str:
    """The same facts as the card's, as text of one paragraph."""
    state = _state_words(thread, message_context)
    return "\n".join([_with_steps(state, thread.state), *facts(thread, message_context, follow_ups)])


def state_line(state: ThreadState, message_context: MessageContext) -> str:
    """Returns the state of the job, claiming no more than the status that the job API reports."""
    return _with_steps(_words(state, message_context), state)


def _with_steps(told: _StateWords, state: ThreadState) -> str:
    steps = checklist(state.work.progress) if state.job is not None and state.failure.problem is None else []
    own = [quote(told.own_words[:_MAX_DETAIL])] if told.own_words else []
    return "\n".join([f"*{told.headline}*", *([told.meaning] if told.meaning else []), *own, *steps])


def _text(thread: Thread, told: _StateWords, prompt: str, rest: list[str]) -> str:
    """Returns the text for notifications and screen readers: the state, and as many other facts as fit."""
    state = thread.state
    own = words.SPOKEN_AGENT_SAID(words=one_line(told.own_words, _MAX_DETAIL)) if told.own_words else ""
    steps = _progress(state.work.progress) if state.job is not None and state.failure.problem is None else ""
    headline = words.SPOKEN_HEADLINE(headline=told.headline)
    said = " ".join(part for part in (headline, told.meaning, own, steps) if part)
    text = f"{said}\n{asked(thread)} {shorten(prompt, 1_200)}\n"
    for sentence in rest:
        if len(text) + len(sentence) + 2 <= MAX_TEXT:
            text += f"{sentence.rstrip('.')}. "
    return text.rstrip(" ")


def _sentences(pages: str) -> list[str]:
    """The changed pages as one sentence."""
    title, *listed = pages.split("\n")
    return [f"{title} {', '.join(line.removeprefix('• ') for line in listed)}"] if listed else [title] * bool(title)


def _state_words(thread: Thread, message_context: MessageContext) -> _StateWords:
    if message_context.several_projects and is_undecided(thread):
        return _StateWords(words.CHOOSING_PROJECT(who=person(thread.requester_id)))
    return _words(thread.state, message_context)


def _until(failure: Failure) -> Markup:
    at = failure.problem_until
    return NOTHING if at is None else words.AT_LEAST_UNTIL(time=moment(at))


def _words(state: ThreadState, message_context: MessageContext) -> _StateWords:
    problem, own = state.failure.problem, state.failure.problem_text if state.failure.problem else ""
    until = _until(state.failure)
    if state.job is None:
        if problem is None:
            return _StateWords(words.WAITING)
        meant = problem in words.UNSENT_MEANING
        meaning = words.UNSENT_MEANING[problem](ask=message_context.ask) if meant else NOTHING
        return _StateWords(words.UNSENT[problem](until=until), meaning, own)
    if problem is Problem.GONE:
        return _gone(state.job)
    meaning = words.BEHIND[problem](until=until, ask=message_context.ask) if problem else NOTHING
    return _StateWords(_status(state, state.job), meaning, own)


def _gone(job: Job) -> _StateWords:
    """A job that no longer exists has no state, but how it ended is still worth showing."""
    last = words.LAST_SEEN(status=_status(ThreadState(job), job)) if job.ended else NOTHING
    return _StateWords(words.GONE, last)


def _status(state: ThreadState, job: Job) -> Markup:
    if state.people.stopped_by and job.status != ARCHIVED:
        return _stopped(state, job)
    if state.work.question and job.status in {ACTIVE, COMPLETED, FAILED}:
        return words.AGENT_ASKS
    became = state.work.progress.pull_request
    if job.status == COMPLETED and not (job.pr_link or became is PullRequestState.PENDING):
        return words.FINISHED_WITHOUT_PULL_REQUEST
    if job.status == COMPLETED:
        return words.PULL_REQUEST_IS.get(became, words.FINISHED_WITH_PULL_REQUEST)
    return words.STATUSES.get(job.status) or words.OTHER_STATUS(status=one_line(job.status, 100))


def _stopped(state: ThreadState, job: Job) -> Markup:
    who = person(state.people.stopped_by)
    if not job.ended:
        return words.STOPPING(who=who)
    return words.STOPPED_WITH_PULL_REQUEST(who=who) if job.pr_link else words.STOPPED(who=who)


def checklist(progress: Progress) -> list[Markup]:
    """Returns the agent's plan with its progress, a line per step; of many steps, those around the next one."""
    done, count = _done(progress), len(progress.plan)
    first = max(min(done - 2, count - _SHOWN_STEPS), 0)
    shown = progress.plan[first : first + _SHOWN_STEPS]
    lines = [Markup(f"{_MARKS[step.status]} {one_line(step.title, _MAX_STEP)}") for step in shown]
    if len(shown) < count:
        lines.append(words.STEPS_DONE(done=done, count=count))
    return [*lines, words.NOW(activity=one_line(progress.activity, _MAX_STEP))] if progress.activity else lines


def _progress(progress: Progress) -> str:
    """Returns the agent's progress in sentences."""
    told = [words.SPOKEN_STEPS_DONE(done=_done(progress), count=len(progress.plan))] if progress.plan else []
    if step := _first(progress, StepStatus.IN_PROGRESS):
        told.append(words.SPOKEN_AT_WORK_ON(step=step))
    if step := _first(progress, StepStatus.PENDING):
        told.append(words.SPOKEN_NEXT(step=step))
    if progress.activity:
        told.append(words.SPOKEN_NOW(activity=one_line(progress.activity, _MAX_STEP)))
    return joined(told)


def _first(progress: Progress, status: StepStatus) -> Markup | None:
    return next((one_line(step.title, _MAX_STEP) for step in progress.plan if step.status is status), None)


def _done(progress: Progress) -> int:
    return sum(step.status is StepStatus.COMPLETED for step in progress.plan)
