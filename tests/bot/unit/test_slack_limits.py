"""How many calls Slack allows, and when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.slack_limits import MINUTE, SLACK_LIMITS, TIER_2, TIER_3, Budget, CallKind, Limit

NOW = 1_700_000_000.0
SOME_CALLS = st.lists(st.floats(0.001, 90.0), max_size=50).map(lambda ahead: [NOW + each for each in sorted(ahead)])
"""When they cease to count."""


@pytest.mark.parametrize("limit", [TIER_2, TIER_3, Limit(4, 6.0)])
@given(asked=st.lists(st.tuples(st.floats(0.0, 3.0), st.integers(1, 9)), min_size=50, max_size=150))
def test_no_window_holds_more_calls_and_each_is_made_as_soon_as_one_has_room(
    limit: Limit, asked: list[tuple[float, int]]
) -> None:
    now, made = NOW, list[float]()
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
    until, after = NOW + retry_after, TIER_3.after_refusal(made, NOW, retry_after)
    assert len(after) == TIER_3.calls
    assert min(after) == until
    assert TIER_3.wait(after, NOW) == pytest.approx(retry_after, abs=1e-5)
    for then in (until, until + 5.0, until + 30.0, until + MINUTE):
        ceased = sum(end <= then for end in made)
        others = min(TIER_3.calls - len(made), int((then - until) / MINUTE * TIER_3.calls + 1e-6) + 1)
        assert TIER_3.left(after, then) == pytest.approx(ceased + others, abs=1)


@given(made=SOME_CALLS, reserve=st.integers(0, 40))
def test_a_call_is_possible_exactly_after_the_wait(made: list[float], reserve: int) -> None:
    at = NOW + TIER_3.wait(made, NOW, reserve=reserve)
    assert TIER_3.left(made, at + 1e-6, reserve=reserve) > 0
    assert at == NOW or TIER_3.left(made, at - 1e-6, reserve=reserve) == 0


def test_a_call_outside_threads_is_made_or_waits() -> None:
    budget = Budget(SLACK_LIMITS, NOW, {("users.info", ""): [NOW + 1.0 + n for n in range(98)]})
    assert budget.take("users.info", 5).calls == 2
    grant = budget.take("users.info", 5)
    assert grant.calls == 0
    assert grant.wait == pytest.approx(1.0)


def test_each_kind_of_call_has_a_limit() -> None:
    assert all(kind.method in SLACK_LIMITS.methods for kind in CallKind)
