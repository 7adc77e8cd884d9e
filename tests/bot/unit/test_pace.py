"""How often something is done: polls, retries, deletion and calls to Slack."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.jobs.observe import JobObserved, decide, open_round
from bot.domain.jobs.poll_pace import Polling
from bot.domain.slack_limits import MINUTE, SLACK_LIMITS, TIER_2, TIER_3, Budget, Grant, Limit
from bot.domain.threads.thread import ThreadState
from bot.errors import ChatRateLimited, StoreUnavailable
from bot.jobapi.models import Job
from bot.runtime.backoff import Backoff
from bot.runtime.http.retry_after import LONGEST_WAIT, parse_retry_after
from bot.scheduler.retention import LONGEST_DELETION, SMALLEST_BATCH, next_batch, pause_after
from bot.slack.sending.web_api import CallGate

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


SPREAD = Backoff(first=2.0, longest=60.0, spread=(0.75, 1.25))


@pytest.mark.parametrize(
    ("backoff", "delays"),
    [
        (Backoff(first=1.0, longest=30.0), [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]),
        (Backoff(first=0.5, longest=5.0, factor=3.0), [0.5, 1.5, 4.5, 5.0]),
        (Backoff(first=9.0, longest=4.0), [4.0, 4.0]),
    ],
)
def test_delays_grow_up_to_the_maximum(backoff: Backoff, delays: list[float]) -> None:
    assert [backoff.delay(failures) for failures in range(1, len(delays) + 1)] == delays


@given(st.integers(0, 10**9), st.floats(0.0, 1.0))
def test_delays_stay_within_their_jitter(failures: int, jitter: float) -> None:
    steady = SPREAD.delay(failures)
    assert 0.75 * steady <= SPREAD.delay(failures, jitter=jitter) <= 1.25 * steady <= 75.0
    assert SPREAD.delay(failures, jitter=jitter) <= SPREAD.delay(failures + 1, jitter=jitter)


NOW = 1_767_225_600.0  # 1 January 2026
HOUR_OFF = "Wed, 01 Jan 2025 00:00:00 GMT"  # the server's clock is nowhere near ours


@pytest.mark.parametrize(
    ("value", "date", "wait"),
    [
        ("0", "", 0.0),
        ("1.5", "", 1.5),
        (" 30 ", "", 30.0),
        ("3601", "", LONGEST_WAIT),
        ("Thu, 01 Jan 2026 00:00:30 GMT", "", 30.0),
        ("Wed, 01 Jan 2025 00:00:30 GMT", HOUR_OFF, 30.0),
        ("Wed, 01 Jan 2025 09:00:00 GMT", HOUR_OFF, LONGEST_WAIT),
        ("Tue, 31 Dec 2024 00:00:00 GMT", HOUR_OFF, 0.0),
        ("Fri, 01 Jan 2100 00:00:00 GMT", "soon", LONGEST_WAIT),
        ("-5", "", None),
        ("soon", "", None),
        ("nan", "", None),
        ("٣", "", None),
        ("9" * 5000, "", None),
        ("Wed, 01 Jan 99999 00:00:00 GMT", "", None),
    ],
)
def test_retry_after_is_parsed(value: str, date: str, wait: float | None) -> None:
    assert parse_retry_after(value, date=date, now=NOW) == wait


@given(st.text(), st.text())
def test_any_retry_after_is_bounded(value: str, date: str) -> None:
    wait = parse_retry_after(value, date=date, now=NOW)
    assert wait is None or 0.0 <= wait <= LONGEST_WAIT


def swept(rows: int, *, row: float, commit: float) -> tuple[float, float, int]:
    """Returns the seconds that it takes to delete so many rows, the part of them in which the database is busy, and
    the last batch's size.

    Args:
        rows: How many rows there are.
        row: Seconds that deleting one takes.
        commit: Seconds that a commit takes.
    """
    busy, paused, size, left = 0.0, 0.0, SMALLEST_BATCH, rows
    while left > 0:
        took = size * row + commit
        left -= size
        busy += took
        paused += pause_after(size, took)
        size = next_batch(size, size * row)
    return busy + paused, busy / (busy + paused), size


@pytest.mark.parametrize(
    ("row", "commit"), [(0.0001, 0.001), (0.0005, 0.001), (0.0005, 0.02), (0.001, 0.01), (0.0015, 0.001)]
)
def test_a_million_are_deleted_within_the_hour_and_half_the_time_is_left_to_others(row: float, commit: float) -> None:
    seconds, busy, size = swept(1_000_000, row=row, commit=commit)
    assert seconds < 3600
    assert busy <= 0.5
    assert size * row <= LONGEST_DELETION or size == SMALLEST_BATCH


CALLED_AT = 1_700_000_000.0
SOME_CALLS = st.lists(st.floats(0.001, 90.0), max_size=50).map(
    lambda ahead: [CALLED_AT + each for each in sorted(ahead)]
)
"""When they cease to count."""


@pytest.mark.full
@pytest.mark.parametrize("limit", [TIER_2, TIER_3, Limit(4, 6.0)])
@given(asked=st.lists(st.tuples(st.floats(0.0, 3.0), st.integers(1, 9)), min_size=50, max_size=150))
def test_no_window_holds_more_calls_and_each_is_made_as_soon_as_one_has_room(
    limit: Limit, asked: list[tuple[float, int]]
) -> None:
    now, made = CALLED_AT, list[float]()
    for pause, wanted in asked:
        now += pause
        within = sum(at > now - limit.seconds for at in made)
        calls = min(limit.left([at + limit.seconds for at in made], now), wanted)
        assert calls == min(limit.calls - within, wanted)
        made += [now] * calls


@given(made=SOME_CALLS, retry_after=st.floats(0.0, 3_600.0))
def test_after_a_429_calls_wait_and_then_resume_as_those_made_cease_to_count(
    made: list[float], retry_after: float
) -> None:
    until, after = CALLED_AT + retry_after, TIER_3.after_refusal(made, CALLED_AT, retry_after)
    assert len(after) == TIER_3.calls
    assert min(after) == until
    assert TIER_3.wait(after, CALLED_AT) == pytest.approx(retry_after, abs=1e-5)
    for then in (until, until + 5.0, until + 30.0, until + MINUTE):
        ceased = sum(end <= then for end in made)
        others = min(TIER_3.calls - len(made), int((then - until) / MINUTE * TIER_3.calls + 1e-6) + 1)
        assert TIER_3.left(after, then) == pytest.approx(ceased + others, abs=1)


@given(made=SOME_CALLS, reserve=st.integers(0, 40))
def test_a_call_is_possible_exactly_after_the_wait(made: list[float], reserve: int) -> None:
    at = CALLED_AT + TIER_3.wait(made, CALLED_AT, reserve=reserve)
    assert TIER_3.left(made, at + 1e-6, reserve=reserve) > 0
    assert at == CALLED_AT or TIER_3.left(made, at - 1e-6, reserve=reserve) == 0


def test_a_call_outside_threads_is_made_or_waits() -> None:
    budget = Budget(SLACK_LIMITS, CALLED_AT, {("users.info", ""): [CALLED_AT + 1.0 + n for n in range(98)]})
    assert budget.take("users.info", 5).calls == 2
    grant = budget.take("users.info", 5)
    assert grant.calls == 0
    assert grant.wait == pytest.approx(1.0)


def test_what_nobody_waits_for_leaves_half_of_a_limit_to_others() -> None:
    limit, budget = SLACK_LIMITS.methods["users.info"], Budget(SLACK_LIMITS, CALLED_AT, {})
    assert budget.take("users.info", limit.calls, yields=True).calls == limit.calls - limit.calls // 2
    assert budget.take("users.info", 1, yields=True).wait == pytest.approx(limit.seconds)
    assert budget.take("users.info", limit.calls).calls == limit.calls // 2


class SharedBudget:
    """The budget in a database that can be away; `taken` are the calls granted at each use. Sleeping passes time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.away = False
        self.taken: list[int] = []
        self.slept: list[float] = []
        self._made: dict[tuple[str, str], list[float]] = {}

    async def __call__(self, method: str, use: Callable[[Budget], Grant]) -> Grant:
        await asyncio.sleep(0)
        if self.away:
            raise StoreUnavailable("away")
        budget = Budget(SLACK_LIMITS, self.now, self._made)
        grant = use(budget)
        self._made |= {at: list(made) for at, (_, made) in budget.changed().items()}
        self.taken.append(grant.calls)
        return grant

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def use_up(self, method: str, *, until: float) -> None:
        self._made[method, ""] = [until] * SLACK_LIMITS.methods[method].calls


@pytest.fixture
def budget() -> SharedBudget:
    return SharedBudget()


@pytest.fixture
def gate(budget: SharedBudget) -> CallGate:
    return CallGate(budget, sleep=budget.sleep)


async def test_concurrent_waiters_share_one_claim_of_calls(budget: SharedBudget, gate: CallGate) -> None:
    await asyncio.gather(*(gate.enter("users.info") for _ in range(20)))
    assert len(budget.taken) <= 2
    assert sum(budget.taken) == 20


@pytest.mark.parametrize("method", ["views.open", "views.update", "chat.postMessage", "reactions.add", "auth.test"])
async def test_exempt_methods_never_wait(budget: SharedBudget, gate: CallGate, method: str) -> None:
    await gate.enter(method)
    await gate.refused(method, 5.0)
    assert not budget.taken


async def test_a_429_reaches_all_processes_and_ends_claimed_calls(budget: SharedBudget, gate: CallGate) -> None:
    await asyncio.gather(*(gate.enter("users.info") for _ in range(2)))
    await gate.refused("users.info", 7.0)
    for process in (gate, CallGate(budget, sleep=budget.sleep)):
        with pytest.raises(ChatRateLimited) as busy:
            await process.enter("users.info")
        assert busy.value.retry_after == 7.0


async def test_a_database_outage_blocks_no_call(budget: SharedBudget, gate: CallGate) -> None:
    budget.away = True
    await gate.enter("users.info")
    await gate.refused("users.info", 10.0)


@pytest.mark.parametrize(("said", "waits"), [(None, 30.0), (0.0, 1.0), (30.0, 30.0)])
def test_a_rate_limit_always_says_how_long_to_wait(said: float | None, waits: float) -> None:
    assert ChatRateLimited("ratelimited", retry_after=said).retry_after == waits
