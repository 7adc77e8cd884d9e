"""Slack look-ups wait briefly for the rate limit; calls that a person waits for within seconds do not."""

import asyncio

import pytest

from bot.domain.slack_limits import SLACK_LIMITS, Grant, SlackLimits
from bot.errors import ChatOverBudget, StoreUnavailable
from bot.slack.sending.web_api import CallGate


class FakeBudget:
    """Grants what a test provides, in order; then anything."""

    def __init__(self, *grants: Grant) -> None:
        self._grants = list(grants)
        self.wanted: list[tuple[str, int]] = []
        self.refusals: list[tuple[str, float]] = []
        self.away = False

    async def take(self, method: str, wanted: int, limits: SlackLimits) -> Grant:
        await asyncio.sleep(0)
        if self.away:
            raise StoreUnavailable("away")
        self.wanted.append((method, wanted))
        return self._grants.pop(0) if self._grants else Grant(wanted)

    async def refused(self, method: str, retry_after: float, limits: SlackLimits) -> None:
        if self.away:
            raise StoreUnavailable("away")
        self.refusals.append((method, retry_after))


async def test_concurrent_waiters_share_one_claim_of_calls() -> None:
    budget = FakeBudget()
    gate = CallGate(budget)
    await asyncio.gather(*(gate.enter("users.info") for _ in range(20)))
    assert len(budget.wanted) <= 2
    assert sum(wanted for _, wanted in budget.wanted) == 20


async def test_a_short_wait_is_awaited_and_a_long_one_raised() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    await CallGate(FakeBudget(Grant(0, 1.0), Grant(1)), sleep=sleep).enter("users.info")
    assert slept == [1.0]
    with pytest.raises(ChatOverBudget) as busy:
        await CallGate(FakeBudget(Grant(0, 30.0)), sleep=sleep).enter("conversations.info")
    assert (busy.value.retry_after, busy.value.method) == (30.0, "conversations.info")


@pytest.mark.parametrize("method", ["views.open", "views.update", "chat.postMessage", "reactions.add", "auth.test"])
async def test_exempt_methods_never_wait(method: str) -> None:
    budget = FakeBudget(Grant(0, 60.0))
    gate = CallGate(budget)
    await gate.enter(method)
    await gate.refused(method, 5.0)
    assert (budget.wanted, budget.refusals) == ([], [])


async def test_a_429_reaches_all_processes_and_ends_claimed_calls() -> None:
    budget = FakeBudget(Grant(5), Grant(0, 60.0))
    gate = CallGate(budget)
    await gate.enter("users.info")
    await gate.refused("users.info", 7.0)
    assert budget.refusals == [("users.info", 7.0)]
    with pytest.raises(ChatOverBudget):
        await gate.enter("users.info")


async def test_a_database_outage_blocks_no_call() -> None:
    budget = FakeBudget()
    budget.away = True
    gate = CallGate(budget, SLACK_LIMITS)
    await gate.enter("users.info")
    await gate.refused("users.info", None)
