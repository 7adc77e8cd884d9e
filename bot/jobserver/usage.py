"""A job's use of its model: tokens, and money if it is reported."""

import math
import re
from dataclasses import dataclass

from bot.jobapi.models import Cost

_MOST_TOKENS = 10**15
_MOST_MONEY = 1e6
_CURRENCY = re.compile(r"[A-Z]{3}")


@dataclass(frozen=True)
class Spent:
    """Tokens sent to a model, including those read from its cache, and tokens it answered."""

    sent: int = 0
    answered: int = 0
    money: Cost | None = None

    @property
    def tokens(self) -> int:
        return self.sent + self.answered

    def __add__(self, other: "Spent") -> "Spent":
        sent, answered = self.sent + other.sent, self.answered + other.answered
        mine, theirs = self.money, other.money
        if mine and theirs and mine.currency == theirs.currency:
            amount = min(mine.amount + theirs.amount, _MOST_MONEY)
            money: Cost | None = Cost(amount=amount, currency=mine.currency)
        else:
            money = theirs or mine  # of two currencies, the second
        return Spent(min(sent, _MOST_TOKENS), min(answered, _MOST_TOKENS), money)

    def in_words(self) -> str:
        """Describes the usage for people; empty if nothing was counted."""
        tokens = f"{self.sent:,} tokens sent to the model, {self.answered:,} answered" if self.tokens else ""
        money = f"{self.money.amount:.2f} {self.money.currency}" if self.money else ""
        return "; ".join(filter(None, (tokens, money)))


def reported_money(amount: float, currency: str) -> Cost | None:
    """Returns the cost that an agent reports; None if it is implausible."""
    is_amount = math.isfinite(amount) and 0 < amount <= _MOST_MONEY
    return Cost(amount=amount, currency=currency) if is_amount and _CURRENCY.fullmatch(currency) else None
