"""A job's model usage: added up, bounded, and in words."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.usage import Money, Spent, reported_money

pytestmark = pytest.mark.promise("usage")

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
    one, two = Spent(money=Money(1.0, "USD")), Spent(money=Money(0.5, "USD"))
    assert (one + two).money == Money(1.5, "USD")
    assert (one + Spent(1, 1)).money == Money(1.0, "USD")
    assert (one + Spent(money=Money(2.0, "EUR"))).money == Money(2.0, "EUR")
