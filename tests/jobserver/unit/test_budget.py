"""A job's use of its model: added up, bounded, in words, within a budget, and saved with its progress."""

import asyncio
import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from bot.errors import StoreUnavailable
from bot.jobapi.models import Cost, PlanStep
from bot.jobserver.errors import BudgetUsedUpError
from bot.jobserver.pipeline.budget import Spending
from bot.jobserver.pipeline.progress import RecordedProgress
from bot.jobserver.settings.server import BudgetSetting, TokenBudget
from bot.jobserver.store.records import ProgressUpdate, says_no
from bot.jobserver.usage import Spent, reported_money

pytestmark = pytest.mark.promise("usage")

SETTING: TypeAdapter[TokenBudget] = TypeAdapter(BudgetSetting)
EVENING = datetime(2026, 11, 23, 23, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("job=2M day=20M", TokenBudget(2_000_000, 20_000_000)),
        ("day=1.5M", TokenBudget(None, 1_500_000)),
        ("job=500k,day=3000000", TokenBudget(500_000, 3_000_000)),
    ],
)
def test_a_budget_is_parsed_from_text(text: str, budget: TokenBudget) -> None:
    """For a job, a day, or both."""
    assert SETTING.validate_python(text) == budget


@pytest.mark.parametrize("text", ["", "2M", "job=0", "job=-1", "job=2G", "week=2M", "job=2M day", "job=1e9", "job=٢"])
def test_an_invalid_budget_is_refused(text: str) -> None:
    """An unintended limit would be none."""
    with pytest.raises(ValidationError, match="job=2M day=20M"):
        SETTING.validate_python(text)


async def test_a_daily_budget_ends_active_work_and_resets_at_midnight() -> None:
    """Whichever job used the last tokens; nobody can continue before."""
    moment = [EVENING]
    spending = Spending(TokenBudget(day=100), now=lambda: moment[0])
    spending.know("2026-11-23", 90)
    with spending.allowed(0) as first, spending.allowed(0) as second:
        first.take(Spent(10))
        for allowance in (first, second):
            with pytest.raises(BudgetUsedUpError, match="today's budget") as raised:
                await allowance.within(asyncio.sleep(60))
            assert raised.value.question == ""
    with pytest.raises(BudgetUsedUpError):
        spending.check(0, "continue")
    moment[0] += timedelta(minutes=2)
    spending.know("2026-11-23", 100)  # the database's clock is behind
    spending.check(0, "continue")


@pytest.mark.parametrize(("reply", "is_no"), [("No.", True), ("no, thanks!", True), ("No way round it: go on", False),
                                              ("continue", False), ("", False)])  # fmt: skip
def test_only_a_plain_no_is_a_no(reply: str, is_no: bool) -> None:  # noqa: FBT001 - what is expected
    """Any other reply says what to do."""
    assert says_no(reply) is is_no


READ = (PlanStep(title="Read"),)


class Recorder:
    """Records updates; the first `failures` of them cannot be written."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.updates: list[ProgressUpdate] = []
        self.recorded = asyncio.Event()

    async def __call__(self, update: ProgressUpdate) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("The database is locked.")
        self.updates.append(update)
        self.recorded.set()


async def test_unsaved_progress_is_saved_with_the_next() -> None:
    recorder, progress = Recorder(failures=2), RecordedProgress("s-0")
    async with progress.recording(recorder, pause=0.001):
        progress.session("s-1")
        progress.plan(READ)
        await asyncio.wait_for(recorder.recorded.wait(), 10)
    assert recorder.updates == [ProgressUpdate(plan=READ, session="s-1")]
    assert progress.session_id == "s-1"


async def test_usage_is_added_up_and_saved_once() -> None:
    """Even if a save is in progress at the end."""
    updates: list[ProgressUpdate] = []
    began, may_end = asyncio.Event(), asyncio.Event()

    async def slow(update: ProgressUpdate) -> None:
        began.set()
        await may_end.wait()
        updates.append(update)

    progress = RecordedProgress()
    async with progress.recording(slow, pause=0):
        progress.spent(Spent(10, 1))
        await asyncio.wait_for(began.wait(), 10)
        progress.spent(Spent(20, 2))
        progress.spent(Spent(30, 3, Cost(amount=0.5, currency="USD")))
        asyncio.get_running_loop().call_soon(may_end.set)
    assert [update.spent for update in updates] == [Spent(10, 1), Spent(50, 5, Cost(amount=0.5, currency="USD"))]
    assert progress.total == Spent(60, 6, Cost(amount=0.5, currency="USD"))


async def test_without_progress_nothing_is_saved_and_an_invalid_id_is_no_session() -> None:
    recorder, progress = Recorder(), RecordedProgress()
    async with progress.recording(recorder):
        progress.session("x" * 5000)
        progress.session("two\nlines")
    assert (recorder.updates, progress.session_id) == ([], None)


AMOUNTS = st.integers(min_value=0, max_value=10**18)
SPENT = st.builds(Spent, AMOUNTS, AMOUNTS)


@given(st.lists(SPENT))
def test_sums_stay_within_the_databases_range(parts: list[Spent]) -> None:
    """Agents and gateways may report anything."""
    total = sum(parts, Spent())
    assert 0 <= total.sent <= 10**15
    assert 0 <= total.answered <= 10**15


@pytest.mark.parametrize(
    ("amount", "currency"), [(0.0, "USD"), (-1.0, "USD"), (math.nan, "USD"), (math.inf, "USD"), (1e9, "USD"),
                             (1.0, "usd"), (1.0, "<b>"), (1.0, "")],
)  # fmt: skip
def test_an_invalid_amount_is_none(amount: float, currency: str) -> None:
    """An agent's numbers are untrusted."""
    assert reported_money(amount, currency) is None


def test_amounts_of_one_currency_are_added_and_another_replaces_them() -> None:
    """Amounts in two currencies have no sum."""
    one, two = Spent(money=Cost(amount=1.0, currency="USD")), Spent(money=Cost(amount=0.5, currency="USD"))
    assert (one + two).money == Cost(amount=1.5, currency="USD")
    assert (one + Spent(1, 1)).money == Cost(amount=1.0, currency="USD")
    assert (one + Spent(money=Cost(amount=2.0, currency="EUR"))).money == Cost(amount=2.0, currency="EUR")
