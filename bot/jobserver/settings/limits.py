"""Settings that limit changes, uploads, tokens and retention."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, Field

from bot.jobserver.settings.values import Allowances, Duration, Patterns
from bot.runtime.secrets.masking import RULE_NAMES
from bot.runtime.settings import Settings

_PART = re.compile(r"(?P<name>job|day)=(?P<number>\d{1,12}(?:\.\d{1,6})?)(?P<unit>[kM]?)", re.ASCII)
_UNITS = {"": 1, "k": 1_000, "M": 1_000_000}


@dataclass(frozen=True)
class TokenBudget:
    """In tokens, sent and answered; None means no limit."""

    job: int | None = None
    day: int | None = None

    @property
    def is_set(self) -> bool:
        return self != TokenBudget()


def _budget(value: object) -> object:
    if not isinstance(value, str):
        return value
    found = [_PART.fullmatch(word) for word in value.replace(",", " ").split()]
    tokens = {part["name"]: int(float(part["number"]) * _UNITS[part["unit"]]) for part in found if part}
    if len(tokens) != len(found) or not tokens or not all(tokens.values()):
        raise ValueError("must be numbers of tokens for a job, a day, or both, such as job=2M day=20M")
    return TokenBudget(**tokens)


BudgetSetting = Annotated[TokenBudget, BeforeValidator(_budget)]


class LimitSettings(Settings):
    """Limits of changes, uploads, tokens and retention."""

    paths: Patterns = Field(
        ("**",),
        description="what a job may change, such as docs/** README.md: space-separated patterns, or a JSON list; files "
        "that run in builds, CI, editors and agents must be named literally",
    )
    allowed_secrets: Allowances = Field(
        (),
        description="where apparent secrets may be pushed: path patterns, each alone or followed by a colon and the "
        "rule that does not apply there, such as docs/samples/** docs/a.md:jwt",
    )
    max_changed_files: int = Field(
        2_000, ge=1, description="how many files one instruction may change; a larger change is rejected as a whole"
    )
    max_file_megabytes: float = Field(
        5.0,
        gt=0,
        description="the largest file that may be added or changed, in megabytes; larger ones are left out",
    )
    max_upload_megabytes: float = Field(
        10.0, gt=0, le=1000, description="the largest file that may come with a prompt, in megabytes"
    )
    upload_space_megabytes: float = Field(
        2_000.0,
        gt=0,
        description="how much space all files that came with prompts may take, in megabytes; more are rejected",
    )
    budget: BudgetSetting = Field(
        TokenBudget(),
        description="how many tokens a job may use before its thread is asked, and all jobs in a day, such as "
        "job=2M day=20M",
    )
    keep_for: Duration = Field(
        timedelta(days=90),
        description="how long an archived job is kept; then it is deleted with its texts, log, folders and ended "
        "branches (seconds or ISO 8601)",
    )

    @property
    def unknown_rules(self) -> list[str]:
        """The rules in ALLOWED_SECRETS that do not exist, or not any more: they allow nothing."""
        return sorted({entry.partition(":")[2] for entry in self.allowed_secrets} - {"", *RULE_NAMES})
