"""What a job used of its model: tokens, and money where it is reported."""

import math
import re
from dataclasses import dataclass

_MOST_TOKENS = 10**15
_MOST_MONEY = 1e6
_CURRENCY = re.compile(r"[A-Z]{3}")


@dataclass(frozen=True)
class Money:
    """An amount in a currency, as ISO 4217 calls it. What an agent tells is bounded here: see `told_money`."""

    amount: float
    currency: str


@dataclass(frozen=True)
class Spent:
    """Tokens that were sent to a model and came back, those it read from its cache included."""

    sent: int = 0
    answered: int = 0
    money: Money | None = None

    @property
    def tokens(self) -> int:
        return self.sent + self.answered

    def __add__(self, other: "Spent") -> "Spent":
        sent, answered = self.sent + other.sent, self.answered + other.answered
        return Spent(min(sent, _MOST_TOKENS), min(answered, _MOST_TOKENS), _sum(self.money, other.money))

    def in_words(self) -> str:
        """Returns it for people; nothing where nothing was counted."""
        tokens = f"{self.sent:,} tokens sent to the model, {self.answered:,} answered" if self.tokens else ""
        money = f"{self.money.amount:.2f} {self.money.currency}" if self.money else ""
        return "; ".join(filter(None, (tokens, money)))


def told_money(amount: float, currency: str) -> Money | None:
    """Returns what an agent tells of its costs; None where that cannot be."""
    is_amount = math.isfinite(amount) and 0 < amount <= _MOST_MONEY
    return Money(amount, currency) if is_amount and _CURRENCY.fullmatch(currency) else None


def _sum(first: Money | None, second: Money | None) -> Money | None:
    """Of two currencies it is the newer one: amounts in different ones have no sum."""
    if first is None or second is None or first.currency != second.currency:
        return second or first
    return Money(min(first.amount + second.amount, _MOST_MONEY), first.currency)
