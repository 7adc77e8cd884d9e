"""How many calls Slack allows, and when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.slack_limits import SLACK_LIMITS, TIER_2, TIER_3, Budget, CallKind, Limit, SlackMethod

NOW = 1_700_000_000.0


def calls_in(limit: Limit, seconds: float, *, every: float = 0.5) -> int:
    """Returns how many calls a busy caller makes in this time."""
    tat, made, now = 0.0, 0, NOW
    while now < NOW + seconds:
        calls = limit.calls(tat, now)
        tat, made, now = max(tat, now) + calls * limit.interval, made + calls, now + every
    return made


@pytest.mark.parametrize("limit", [TIER_2, TIER_3, Limit(60, 4)])
def test_a_burst_is_sent_at_once_and_the_rest_at_an_even_pace(limit: Limit) -> None:
    assert limit.calls(0.0, NOW) == limit.burst
    assert calls_in(limit, 60.0) in range(int(limit.per_minute), int(limit.per_minute) + limit.burst + 1)
    assert calls_in(limit, 600.0) <= 10 * limit.per_minute + limit.burst


@given(retry_after=st.floats(0.0, 3_600.0), before=st.floats(0.0, 100.0), earlier=st.floats(0.0, 60.0))
def test_after_a_429_calls_wait_and_then_resume_one_at_a_time(
    retry_after: float, before: float, earlier: float
) -> None:
    tat = max(NOW + before, TIER_3.after_refusal(NOW, retry_after))
    assert TIER_3.calls(tat, NOW + max(retry_after - 0.001 - earlier, 0.0)) == 0 or retry_after < 0.001
    assert TIER_3.wait(tat, NOW) >= retry_after - 1e-6
    at = NOW + TIER_3.wait(tat, NOW)
    assert TIER_3.calls(tat, at + 1e-6) == 1
    assert TIER_3.calls(tat, at + TIER_3.interval + 1e-6) == 2


def test_progress_updates_leave_half_the_rate_to_new_states() -> None:
    budget = Budget(SLACK_LIMITS, NOW, {})
    while budget.spend(CallKind.CARD_PROGRESS, "C1"):
        pass
    assert budget.calls(CallKind.CARD_PROGRESS) == 0
    assert budget.calls(CallKind.CARD) == TIER_3.burst // 2


def test_a_full_channel_does_not_affect_others() -> None:
    budget = Budget(SLACK_LIMITS, NOW, {(SlackMethod.POST_MESSAGE, "C1"): NOW + 60.0})
    assert budget.held_channels(CallKind.POST) == ["C1"]
    assert not budget.spend(CallKind.POST, "C1")
    assert [budget.spend(CallKind.POST, "C2") for _ in range(5)] == [True] + [False] * 4
    costs = budget.costs()
    assert costs[SlackMethod.POST_MESSAGE, ""] == pytest.approx(0.2)
    assert costs[SlackMethod.POST_MESSAGE, "C2"] == pytest.approx(60 / 55)


def test_a_call_outside_threads_is_made_or_waits() -> None:
    budget = Budget(SLACK_LIMITS, NOW, {("users.info", ""): NOW + 98 * 0.6})
    assert budget.take("users.info", 5).calls == 2
    grant = budget.take("users.info", 5)
    assert grant.calls == 0
    assert grant.wait == pytest.approx(0.6)


def test_each_kind_of_call_has_a_limit() -> None:
    assert all(kind.method in SLACK_LIMITS.methods for kind in CallKind)
