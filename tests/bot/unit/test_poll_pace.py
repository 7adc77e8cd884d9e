from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.jobs.observe import JobObserved, decide, open_round
from bot.domain.jobs.poll_pace import Polling
from bot.domain.threads.thread import ThreadState
from bot.jobapi.models import Job

POLLING = Polling()
ENDED_AT = 1_000.0


def polled_at(state: ThreadState, status: str, jitter: float) -> list[float]:
    """Returns when a job with this status since ENDED_AT is polled, in seconds from then."""
    at, times = ENDED_AT, list[float]()
    while True:
        decision = decide(state, JobObserved(Job("j1", status)), at, POLLING, jitter=jitter)
        times.append(at - ENDED_AT)
        if decision.next_poll_in is None or at > ENDED_AT + 500:
            return times
        state, at = decision.state, at + decision.next_poll_in


@given(st.floats(0.0, 1.0))
def test_a_finished_job_without_a_link_is_polled_ever_more_rarely(jitter: float) -> None:
    """A thousand of them at once cost half of what they did while active, and soon a fraction."""
    times = polled_at(ThreadState(job=Job("j1", "active")), "completed", jitter)
    pauses = [round(later - earlier, 6) for earlier, later in pairwise(times)]
    assert pauses[0] >= 2 * POLLING.fastest * 0.8
    assert pauses == sorted(pauses)
    assert len(times) <= 15
    assert POLLING.grace <= times[-1] <= POLLING.grace + POLLING.slowest * 1.2


def test_a_finished_job_is_polled_like_an_active_one_after_a_follow_up() -> None:
    """The agent may start at any moment."""
    finished = decide(ThreadState(job=Job("j1", "active")), JobObserved(Job("j1", "completed")), 900.0, POLLING).state
    told = open_round(finished, ENDED_AT, POLLING)
    assert polled_at(told, "completed", 0.5)[:4] == pytest.approx([0.0, 2.0, 4.0, 6.0])
