"""The findings of a check of the setup, and the events whose last time it looks at."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class FindingStatus(StrEnum):
    """The status of a finding."""

    OK = "ok"
    WARNING = "warning"
    """Something does not work, or soon will not, but jobs do."""
    ERROR = "error"
    """Jobs do not work."""
    NOT_CHECKED = "not_checked"


@dataclass(frozen=True)
class Finding:
    """The result of checking one thing.

    Attributes:
        check: The stable name of what was checked, such as `slack.bot_token`.
        status: Its status.
        found: What was found.
        why: Why it matters; empty if nothing is wrong.
        fix: What to do about it; empty if nothing is wrong.
        passing: It may resolve itself, like an outage.
    """

    check: str
    status: FindingStatus
    found: str
    why: str = ""
    fix: str = ""
    passing: bool = False

    @classmethod
    def ok(cls, check: str, found: str) -> Self:
        """Returns a finding that nothing is wrong."""
        return cls(check, FindingStatus.OK, found)

    @classmethod
    def warning(cls, check: str, found: str, *, why: str, fix: str) -> Self:
        """Returns a finding about a fault that does not keep jobs from working."""
        return cls(check, FindingStatus.WARNING, found, why, fix)

    @classmethod
    def error(cls, check: str, found: str, *, why: str, fix: str, passing: bool = False) -> Self:
        """Returns a finding that jobs do not work."""
        return cls(check, FindingStatus.ERROR, found, why, fix, passing)

    @classmethod
    def not_checked(cls, check: str, found: str, *, fix: str = "") -> Self:
        """Returns a finding that the check was not possible; `found` says why."""
        return cls(check, FindingStatus.NOT_CHECKED, found, fix=fix)

    @property
    def is_fault(self) -> bool:
        """Whether something is wrong."""
        return self.status in {FindingStatus.WARNING, FindingStatus.ERROR}

    @property
    def words(self) -> str:
        """What is wrong, why it matters and what to do, in one line."""
        return " ".join(filter(None, (self.found, self.why, self.fix)))


class LastTime(StrEnum):
    """A kind of event. The values are stored in databases."""

    COMMAND = "command"
    """A slash command came from Slack."""
    EVENT = "event"
    """An event came from Slack: a message, a mention, a reaction, an opened Home."""
    CLICK = "click"
    """A button, a menu, a shortcut or a form was used in Slack."""
    BAD_SIGNATURE = "bad_signature"
    """An HTTP request arrived that was not signed with our secret."""
