"""Slack look-ups wait briefly for the rate limit; calls that a person waits for within seconds do not."""

import asyncio
from collections.abc import Callable

import pytest

from bot.domain.slack_limits import SLACK_LIMITS, Budget, Grant
from bot.errors import ChatRateLimited, StoreUnavailable
from bot.slack.sending.web_api import CallGate


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
