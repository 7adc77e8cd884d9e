"""The same poll in the same state needs no decision: a skipped poll would never have had an effect."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.worlds.polled_job import PolledJob

from bot.domain.jobs.job import Problem
from bot.domain.jobs.observe import (
    Decision,
    JobNotFound,
    JobObserved,
    Observation,
    decide,
    never_has_consequences,
)
from bot.domain.jobs.outages import JobApiUnavailable
from bot.domain.jobs.poll_pace import PENDING_FOR, Polling, pace_of
from bot.domain.threads.thread import ThreadState
from bot.jobapi.models import (
    Changes,
    FileChange,
    Job,
    JobDetails,
    PlanStep,
    PullRequestDetails,
    PullRequestState,
    StepStatus,
)

pytestmark = pytest.mark.promise("cheap polls")

POLLING = Polling()
STEPS = tuple(PlanStep(title=title, status=StepStatus.PENDING) for title in ("Read", "Write"))
details = st.none() | st.builds(
    JobDetails,
    summary=st.sampled_from(["", "Done."]),
    question=st.sampled_from(["", "Which?"]),
    plan=st.sampled_from([(), STEPS[:1], STEPS]),
    activity=st.sampled_from(["", "Reading"]),
    revision=st.sampled_from(["", "a1", "b2"]),
    changes=st.sampled_from([None, Changes(files=(FileChange(path="a.md"),), file_count=1)]),
    pull_request=st.sampled_from([None, PullRequestDetails(state=PullRequestState.PENDING)]),
)
jobs = st.builds(
    Job,
    st.just("j1"),
    st.sampled_from(["active", "queued", "completed", "failed", "archived"]),
    pr_link=st.sampled_from([None, "https://x/1", "https://x/2"]),
    details=details,
)
failures = st.builds(
    JobApiUnavailable,
    st.just("away"),
    retry_after=st.sampled_from([None, 90.0]),
    problem=st.sampled_from([Problem.OUT_OF_REACH, Problem.BUSY]),
)
observations = st.builds(JobObserved, jobs) | st.just(JobNotFound()) | failures
times = st.sampled_from([0.0, 0.5, 3.9, 4.0, 60.0, 179.0, 301.0])
"""Within and beyond each delay: a card's interval, an outage's patience, the grace period."""
steps = st.lists(st.tuples(st.booleans(), observations, times), max_size=12)


def reached(history: list[tuple[bool, Observation, float]]) -> tuple[ThreadState, float]:
    """Returns the state after these polls; if the first value is true, a follow-up is sent before."""
    polled = PolledJob(every=0.0)
    for follow_up, seen, passed in history:
        polled.now += passed
        if follow_up and polled.state.job:
            polled.follow_up()
        polled.see(seen)
    return polled.state, polled.now


@given(steps, jobs, times, st.lists(st.floats(0.0, 10_000.0), max_size=4), st.floats(0.0, 1.0))
@example([], Job("j1", "active"), 0.0, [], 0.5)
def test_a_skipped_poll_would_never_have_had_an_effect(
    history: list[tuple[bool, Observation, float]], job: Job, passed: float, later: list[float], jitter: float
) -> None:
    before, now = reached(history)
    seen, now = JobObserved(job), now + passed
    for state in (before, decide(before, seen, now, POLLING).state):
        if not never_has_consequences(state, seen, now, POLLING):
            continue
        pace = pace_of(state)
        for at in sorted(
            now + each for each in (*later, 0.0, POLLING.card_every, POLLING.grace, POLLING.patience, PENDING_FOR)
        ):
            next_poll_in = pace.next_poll_in(at, POLLING, jitter=jitter) if pace else None
            expected = Decision(state, (), card_changed=False, next_poll_in=next_poll_in)
            assert decide(state, seen, at, POLLING, jitter=jitter) == expected


def test_an_active_job_without_news_is_skipped() -> None:
    seen = JobObserved(Job("j1", "active", details=JobDetails(plan=STEPS)))
    state, now = reached([(False, seen, 0.0)])
    assert never_has_consequences(state, seen, now, POLLING)


def test_throttled_progress_is_not_skipped() -> None:
    """The card shows it once its interval is over."""
    seen = JobObserved(Job("j1", "active", details=JobDetails(plan=STEPS)))
    state, now = reached([(False, JobObserved(Job("j1", "active", details=JobDetails(activity="Reading"))), 0.0)])
    decision = decide(state, seen, now + 1.0, POLLING)
    assert decision.state == state
    assert not never_has_consequences(state, seen, now + 1.0, POLLING)
