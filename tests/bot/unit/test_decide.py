from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.worlds.polled_job import PolledJob, Seen

from bot.domain.jobs.job import Problem
from bot.domain.jobs.observe import (
    Decision,
    JobNotFound,
    JobObserved,
    Observation,
    decide,
    open_round,
)
from bot.domain.jobs.outages import JobApiUnavailable
from bot.domain.jobs.poll_pace import Polling
from bot.domain.projects import PostMode
from bot.domain.threads.thread import Failure, ThreadState, Work, owes_status
from bot.jobapi.models import Job
from bot.notices.job import (
    JobActiveAgain,
    JobArchived,
    JobDisappeared,
    JobFailed,
    JobFinished,
    JobSilent,
    JobStarted,
    JobStatusChanged,
    JobStopped,
    PullRequestFound,
)
from bot.notices.notice import NewNotice, NoticeContent
from bot.notices.requests import AccessDenied, OutageEnded, OutageStarted

pytestmark = pytest.mark.promise("gone")

POLLING = Polling()
LINK = "https://example.org/pull/1"
OTHER = "https://example.org/pull/2"


def job(status: str = "active", link: str | None = None) -> Job:
    return Job("j1", status, pr_link=link)


ACTIVE, DONE, LINKED, OTHERS = job(), job("completed"), job("completed", LINK), job("completed", OTHER)
FAILED, ARCHIVED, PAUSED, ACTIVE_LINKED = job("failed"), job("archived"), job("paused"), job("active", LINK)
ARCHIVED_LINKED = job("archived", LINK)
DOWN, DENIED = JobApiUnavailable("cannot be reached"), JobApiUnavailable("no", status=401)
STARTED, ENDED, FINISHED = JobStarted("j1"), JobFinished(), JobFinished(LINK, new=True)
AGAIN, CHECK, FOUND = JobActiveAgain(), JobFinished(LINK, again=True), PullRequestFound(OTHER, changed=True)
FINISHED_AGAIN, CHANGED = replace(FINISHED, again=True), JobFinished(OTHER, new=True, changed=True, again=True)
UNKNOWN = [JobStatusChanged("paused"), JobStatusChanged("active")]
OUTAGE, BACK = OutageStarted(Problem.OUT_OF_REACH, "cannot be reached"), OutageEnded(Problem.OUT_OF_REACH)


def kinds(told: Iterable[NewNotice]) -> list[type[NoticeContent]]:
    return [type(notice.message) for notice in told]


ANNOUNCED: dict[str, tuple[list[Seen], list[NoticeContent]]] = {
    "a start, and an end with its link": ([ACTIVE, ACTIVE, LINKED, LINKED], [STARTED, FINISHED]),
    "a job that had ended when it was created": ([LINKED], [FINISHED]),
    "a failure, once": ([ACTIVE, FAILED, FAILED], [STARTED, JobFailed()]),
    "that it was archived, once": ([ACTIVE, ARCHIVED, ARCHIVED], [STARTED, JobArchived()]),
    "a late link": ([ACTIVE, DONE, LINKED], [STARTED, ENDED, PullRequestFound(LINK)]),
    "a late link of a later round": ([LINKED, "follow-up", ACTIVE, DONE, OTHERS], [FINISHED, AGAIN, CHECK, FOUND]),
    "a changed link, but not a returning one": ([ACTIVE, LINKED, OTHERS, LINKED], [STARTED, FINISHED, FOUND]),
    "no status that goes back": ([ACTIVE, DONE, ACTIVE, DONE], [STARTED, ENDED]),
    "an unknown status, and work after it": ([ACTIVE, PAUSED, ACTIVE, DONE], [STARTED, *UNKNOWN, ENDED]),
    "work that no follow-up explains, once it has lasted": ([DONE, ACTIVE, ACTIVE, DONE], [ENDED, AGAIN]),
    "and its end, once that has lasted": ([DONE, ACTIVE, ACTIVE, DONE, DONE], [ENDED, AGAIN, ENDED]),
    "the end of each round": ([ACTIVE, LINKED, "follow-up", ACTIVE, LINKED], [STARTED, FINISHED, AGAIN, CHECK]),
    "an end that has lost its link": ([ACTIVE, LINKED, "follow-up", ACTIVE, DONE], [STARTED, FINISHED, AGAIN, CHECK]),
    "an end with another link": ([LINKED, "follow-up", ACTIVE, OTHERS], [FINISHED, AGAIN, CHANGED]),
    "a first end, not as finished again": ([ACTIVE, "follow-up", ACTIVE, LINKED], [STARTED, FINISHED]),
    "a link after an end without one": ([DONE, "follow-up", ACTIVE, LINKED], [ENDED, AGAIN, FINISHED_AGAIN]),
    "a link while active, which is no end": (
        [ACTIVE, ACTIVE_LINKED, "follow-up", ACTIVE_LINKED, LINKED],
        [STARTED, PullRequestFound(LINK), JobFinished(LINK)],
    ),
    "no follow-up to an active job": ([ACTIVE, "follow-up", ACTIVE], [STARTED]),
    "no end from before the follow-up": ([LINKED, "follow-up", LINKED], [FINISHED]),
    "a failure and its link in one message": ([ACTIVE, job("failed", LINK)], [STARTED, JobFailed(link=LINK, new=True)]),
    "a link of an archived job after its end": (
        [ACTIVE, DONE, ARCHIVED_LINKED],
        [STARTED, ENDED, JobArchived(), PullRequestFound(LINK)],
    ),
    "a link of an archived job without an end, so that somebody is mentioned": (
        [ACTIVE, ARCHIVED_LINKED],
        [STARTED, JobArchived(), PullRequestFound(LINK, alone=True)],
    ),
    "a lasting outage and its end": ([ACTIVE, *[DOWN] * 40, ACTIVE, ACTIVE], [STARTED, OUTAGE, BACK]),
    "no short outage": ([ACTIVE, *[DOWN] * 20, ACTIVE], [STARTED]),
    "a rejected key, at once": ([ACTIVE, DENIED, DENIED], [STARTED, AccessDenied(401)]),
}


@pytest.mark.parametrize(("history", "told"), ANNOUNCED.values(), ids=ANNOUNCED)
def test_each_fact_is_announced_as_it_is_known(history: list[Seen], told: list[NoticeContent]) -> None:
    polled = PolledJob()
    polled.see(*history)
    assert [notice.message for notice in polled.told] == told


@pytest.mark.parametrize(
    ("last", "every", "told"),
    [
        (DONE, 4.0, [JobStarted, JobFinished, JobFailed, JobFinished]),
        (FAILED, 2.0, [JobStarted, JobFinished, JobFailed]),
    ],
)
def test_a_status_that_comes_back_is_announced_once_it_has_lasted(
    last: Job, every: float, told: list[type[NoticeContent]]
) -> None:
    """Those in between are not, if they come back sooner."""
    polled = PolledJob(every)
    polled.see(ACTIVE, DONE, FAILED, DONE, last, last)
    assert kinds(polled.told) == told
    assert not owes_status(polled.state)


def test_a_vanished_link_stays_on_the_card() -> None:
    polled = PolledJob()
    polled.see(LINKED, DONE)
    assert polled.state.job == LINKED


@pytest.mark.parametrize("link", [None, LINK])
def test_a_flapping_job_is_polled_until_its_status_was_announced(link: str | None) -> None:
    polled, done = PolledJob(), job("completed", link)
    polled.see(done, job("failed", link), done)
    assert decide(polled.state, DOWN, 9_999.0, POLLING).next_poll_in is not None
    told = decide(polled.state, JobObserved(done), 9_999.0, POLLING)
    assert kinds(told.notices) == [JobFinished]
    assert told.next_poll_in is None


def test_a_state_that_an_earlier_version_recorded_is_as_it_was_told() -> None:
    state = ThreadState(job=job("completed"), work=Work(changed_at=0.0))
    assert decide(state, JobObserved(job("completed")), 9_999.0, POLLING).state == state
    assert kinds(decide(state, JobObserved(job("failed")), 9_999.0, POLLING).notices) == [JobFailed]


def test_the_card_says_why_a_job_cannot_be_read_and_follows_the_reason() -> None:
    polled = PolledJob()
    limited = JobApiUnavailable("asks to wait", retry_after=600.0, problem=Problem.RATE_LIMITED, words="slow down")
    polled.see(ACTIVE, *[limited] * 40)
    assert kinds(polled.told) == [JobStarted, OutageStarted]
    failure = polled.state.failure
    assert (failure.problem, failure.problem_text) == (Problem.RATE_LIMITED, "slow down")
    faulty = JobApiUnavailable("does not answer properly", problem=Problem.FAULTY)
    decision = decide(polled.state, faulty, 1_500.0, POLLING)
    assert (decision.card_changed, decision.notices) == (True, ())
    failure = decision.state.failure
    assert (failure.problem, failure.problem_text, failure.problem_until) == (Problem.FAULTY, "", None)


def test_a_rejected_api_key_is_on_the_card() -> None:
    polled = PolledJob()
    polled.see(ACTIVE, DENIED)
    assert polled.state.failure.problem is Problem.NOT_ALLOWED


def test_an_ended_job_is_polled_for_a_while_after_a_follow_up() -> None:
    polled = PolledJob(every=0.0)
    polled.see(LINKED, "follow-up", LINKED)
    assert decide(polled.state, JobObserved(LINKED), polled.now, POLLING).next_poll_in is not None
    assert decide(polled.state, JobObserved(LINKED), polled.now + POLLING.grace, POLLING).next_poll_in is None


def test_polling_ends_with_the_job_but_waits_for_a_late_link() -> None:
    assert decide(ThreadState(), JobObserved(job("completed", LINK)), 0.0, POLLING).next_poll_in is None
    assert decide(ThreadState(), JobObserved(job("failed")), 0.0, POLLING).next_poll_in is None
    state = decide(ThreadState(), JobObserved(job("completed")), 0.0, POLLING).state
    assert decide(state, JobObserved(job("completed")), 179.0, POLLING).next_poll_in is not None
    assert decide(state, JobObserved(job("completed")), 180.0, POLLING).next_poll_in is None


def test_polling_slows_down_within_its_bounds() -> None:
    state = ThreadState(job=job(), work=Work(changed_at=0.0))
    pauses = [decide(state, JobObserved(job()), now, POLLING).next_poll_in for now in (1.0, 40.0, 4_000.0)]
    assert pauses == [2.0, 10.0, 30.0]


@pytest.mark.parametrize(
    ("sightings", "is_gone"),
    [
        ([(0.0, 404), (119.0, 404), (119.9, 404)], False),
        ([(0.0, 404), (120.0, 404)], False),
        ([(0.0, 404), (60.0, 404), (120.0, 404)], True),
        ([(0.0, 404), (60.0, 404), (100.0, 200), (120.0, 404), (230.0, 404), (239.0, 404)], False),
        ([(0.0, 404), (60.0, 404), (100.0, 502), (120.0, 404), (230.0, 404), (239.0, 404)], False),
    ],
)
def test_a_job_is_gone_after_some_misses_over_two_minutes(sightings: list[tuple[float, int]], *, is_gone: bool) -> None:
    seen: dict[int, Observation] = {404: JobNotFound(), 200: JobObserved(job()), 502: JobApiUnavailable("no")}
    state, said = ThreadState(job=job()), list[NewNotice]()
    for at, status in sightings:
        decision = decide(state, seen[status], at, POLLING)
        state, said = decision.state, [*said, *decision.notices]
    assert (state.failure.problem is Problem.GONE) == (JobDisappeared in kinds(said)) == is_gone


def test_a_job_that_is_gone_is_polled_slowly_for_a_day_and_may_come_back() -> None:
    state = ThreadState(job=job(), failure=Failure(not_found_count=2, not_found_since=0.0))
    decision = decide(state, JobNotFound(), 120.0, POLLING)
    for at, poll_in in ((130.0, 32.5), (7_200.0, 600.0), (24 * 3600.0, None)):
        for sighting in (JobNotFound(), JobApiUnavailable("no", status=401)):
            later = decide(decision.state, sighting, at, POLLING)
            assert (later.notices, later.next_poll_in) == ((), poll_in)
            assert later.state == decision.state
    back = decide(decision.state, JobObserved(job()), 9_000.0, POLLING)
    assert back.state.failure.problem is None
    assert [notice.message for notice in back.notices][:1] == [OutageEnded(Problem.GONE)]
    again = replace(back.state, failure=replace(back.state.failure, not_found_count=2, not_found_since=9_001.0))
    keys_ = [
        notice.key for each in (decision, decide(again, JobNotFound(), 9_200.0, POLLING)) for notice in each.notices
    ]
    assert len(set(keys_)) == 2


def test_retry_after_is_obeyed() -> None:
    state = ThreadState(job=ACTIVE)
    next_in = decide(state, JobApiUnavailable("asks to wait", retry_after=77.0), 1_001.0, POLLING).next_poll_in
    assert next_in is not None
    assert next_in >= 77.0


statuses = st.sampled_from(["active", "completed", "failed", "archived", "paused"])
any_link = st.sampled_from([None, LINK, OTHER])
sightings = st.one_of(
    st.builds(JobObserved, st.builds(job, statuses, any_link)),
    st.just(JobNotFound()),
    st.builds(
        JobApiUnavailable,
        st.just("no"),
        st.sampled_from([None, 401]),
        st.sampled_from([None, 5.0, 3600.0]),
        st.sampled_from([Problem.OUT_OF_REACH, Problem.RATE_LIMITED, Problem.BUSY]),
    ),
)
steps = st.lists(st.tuples(st.booleans(), sightings, st.floats(0.0, 400.0)), max_size=40)


def play(history: list[tuple[bool, Observation, float]]) -> list[tuple[int, ThreadState, Decision]]:
    """Plays observations; if the first value is true, a follow-up is sent before."""
    state, now, played = ThreadState(), 0.0, []
    for follow_up, sighting, passed in history:
        now += passed
        if follow_up and state.job:
            state = open_round(state, now, POLLING)
        decision = decide(state, sighting, now, POLLING)
        played.append((decision.state.round, state, decision))
        state = decision.state
    return played


@given(steps)
def test_no_fact_is_announced_twice(history: list[tuple[bool, Observation, float]]) -> None:
    told = [notice for _, _, decision in play(history) for notice in decision.notices]
    found = [notice.key for notice in told]
    assert len(found) == len(set(found))


def test_start_notices_are_held_and_ends_are_not() -> None:
    """A held notice is dropped if the end comes first."""
    polled = PolledJob()
    polled.see(ACTIVE, LINKED, "follow-up", ACTIVE)
    assert [notice.due_in for notice in polled.told] == [POLLING.hold_back, 0.0, POLLING.hold_back]


def quietly(state: ThreadState, seen: Job, now: float) -> Decision:
    return decide(state, JobObserved(seen), now, POLLING.for_posts(PostMode.ENDS))


def test_in_ends_only_mode_starts_are_not_announced() -> None:
    begun = quietly(ThreadState(), job(), 0.0)
    ended = quietly(begun.state, job("completed", LINK), 10.0)
    again = quietly(open_round(ended.state, 20.0, POLLING), job(), 21.0)
    assert begun.notices == again.notices == ()
    assert kinds(ended.notices) == [JobFinished]


def test_in_ends_only_mode_a_silent_job_is_announced_once() -> None:
    """In other modes its start was announced."""
    begun = quietly(ThreadState(), job(), 0.0)
    assert quietly(begun.state, job(), POLLING.silence - 1.0).notices == ()
    told = quietly(begun.state, job(), POLLING.silence)
    assert kinds(told.notices) == [JobSilent]
    assert quietly(told.state, job(), 9 * POLLING.silence).notices == ()
    assert decide(begun.state, JobObserved(job()), POLLING.silence, POLLING).notices == ()


@given(steps)
def test_no_end_is_announced_twice_in_a_row_and_links_once(
    history: list[tuple[bool, Observation, float]],
) -> None:
    last: tuple[int, type[NoticeContent]] | None = None
    announced: set[str] = set()
    for turn, _, decision in play(history):
        for message in (notice.message for notice in decision.notices):
            if isinstance(message, _OF_STATUS):
                assert (turn, type(message)) != last or isinstance(message, JobStatusChanged)
                last = turn, type(message)
            if isinstance(message, PullRequestFound):
                assert message.link not in announced
            if isinstance(message, JobFinished | JobFailed | PullRequestFound) and message.link:
                announced.add(message.link)


@given(steps)
def test_the_threads_last_word_is_the_cards(history: list[tuple[bool, Observation, float]]) -> None:
    """Once the status has lasted, whatever it was before."""
    told: list[NoticeContent] = []
    for _, _, decision in play(history):
        told += [each.message for each in decision.notices if isinstance(each.message, _OF_STATUS)]
        state, job_ = decision.state, decision.state.job
        if job_ is None:
            continue
        final = decide(state, JobObserved(job_), state.work.changed_at + POLLING.hold_back, POLLING)
        last = [*told, *(each.message for each in final.notices if isinstance(each.message, _OF_STATUS))][-1:]
        assert not owes_status(final.state)
        assert [_status_said(message) for message in last] == [job_.status]


_OF_STATUS = (JobStarted, JobActiveAgain, JobStatusChanged, JobFinished, JobFailed, JobStopped, JobArchived)


def _status_said(message: NoticeContent) -> str:
    match message:
        case JobStarted() | JobActiveAgain():
            return "active"
        case JobStatusChanged(status):
            return status
        case JobFailed():
            return "failed"
        case JobArchived():
            return "archived"
        case _:
            return "completed"


@given(steps)
def test_every_new_link_is_announced(history: list[tuple[bool, Observation, float]]) -> None:
    seen, told = set(), set()
    for _, _, decision in play(history):
        if decision.state.job and decision.state.job.pr_link:
            seen.add(decision.state.job.pr_link)
        for message in (notice.message for notice in decision.notices):
            if isinstance(message, JobFinished | JobFailed | PullRequestFound) and message.link:
                told.add(message.link)
    assert seen == told


@given(steps)
def test_an_unchanged_poll_announces_nothing(history: list[tuple[bool, Observation, float]]) -> None:
    for _, state, _ in play(history):
        if state.job is None or state.failure.outage_announced or state.failure.problem:
            continue
        again = decide(state, JobObserved(state.job), state.work.changed_at + 1.0, POLLING)
        assert again.notices == ()
        assert not again.card_changed
        assert replace(
            again.state,
            failure=replace(again.state.failure, not_found_count=0, not_found_since=None, outage_since=None),
            work=replace(again.state.work, unseen=False),
        ) == replace(
            state,
            failure=replace(state.failure, not_found_count=0, not_found_since=None, outage_since=None),
            work=replace(state.work, unseen=False),
        )


@given(steps, st.floats(0.0, 1.0))
def test_the_next_poll_respects_the_floor_and_ends_only_with_the_job(
    history: list[tuple[bool, Observation, float]], jitter: float
) -> None:
    for _, state, _ in play(history):
        decision = decide(state, JobObserved(job()), state.work.changed_at + 1.0, POLLING, jitter=jitter)
        assert decision.next_poll_in is not None
        assert POLLING.fastest <= decision.next_poll_in <= POLLING.slowest * 1.2
