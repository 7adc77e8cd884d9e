"""Settings: how many tokens a job may take of its model, and all jobs of a day."""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator

_PART = re.compile(r"(?P<name>job|day)=(?P<number>\d{1,12}(?:\.\d{1,6})?)(?P<unit>[kM]?)", re.ASCII)
_UNITS = {"": 1, "k": 1_000, "M": 1_000_000}


@dataclass(frozen=True)
class Budget:
    """In tokens, sent and answered; None is without a limit."""

    job: int | None = None
    day: int | None = None

    @property
    def is_set(self) -> bool:
        return self != Budget()


def _budget(value: object) -> object:
    if not isinstance(value, str):
        return value
    found = [_PART.fullmatch(word) for word in value.replace(",", " ").split()]
    tokens = {part["name"]: int(float(part["number"]) * _UNITS[part["unit"]]) for part in found if part}
    if len(tokens) != len(found) or not tokens or not all(tokens.values()):
        raise ValueError("must be numbers of tokens for a job, a day, or both, such as job=2M day=20M")
    return Budget(**tokens)


BudgetSetting = Annotated[Budget, BeforeValidator(_budget)]
