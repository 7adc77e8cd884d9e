"""What a check of the set-up found: a status, and the words for the operator."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class FindingStatus(StrEnum):
    """How it is."""

    OK = "ok"
    WARNING = "warning"
    """Something does not work, or soon will not; the main job does."""
    ERROR = "error"
    """The main job does not work."""
    NOT_CHECKED = "not_checked"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        check: What was looked at, by a name that stays the same: `slack.bot_token`.
        status: How it is.
        found: What was found.
        why: Why it matters; empty where nothing is wrong.
        fix: What to do about it; empty where nothing is wrong.
        passing: It may be over by itself, like an outage.
    """

    check: str
    status: FindingStatus
    found: str
    why: str = ""
    fix: str = ""
    passing: bool = False

    @classmethod
    def ok(cls, check: str, found: str) -> Self:
        """Nothing is wrong."""
        return cls(check, FindingStatus.OK, found)

    @classmethod
    def warning(cls, check: str, found: str, *, why: str, fix: str, passing: bool = False) -> Self:
        """Something is wrong that the main job does without."""
        return cls(check, FindingStatus.WARNING, found, why, fix, passing)

    @classmethod
    def error(cls, check: str, found: str, *, why: str, fix: str, passing: bool = False) -> Self:
        """The main job does not work."""
        return cls(check, FindingStatus.ERROR, found, why, fix, passing)

    @classmethod
    def not_checked(cls, check: str, found: str, *, fix: str = "") -> Self:
        """It is not known how it is: `found` says why."""
        return cls(check, FindingStatus.NOT_CHECKED, found, fix=fix)

    @property
    def is_fault(self) -> bool:
        """Whether something is wrong."""
        return self.status in {FindingStatus.WARNING, FindingStatus.ERROR}

    @property
    def words(self) -> str:
        """What is wrong, why it matters and what to do, in one line."""
        return " ".join(filter(None, (self.found, self.why, self.fix)))
