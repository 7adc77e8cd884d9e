"""Counts events. This base class counts nothing, for processes that serve no metrics."""

from collections.abc import Awaitable, Callable, Sequence

from bot.app.metrics.readings import Readings
from bot.domain.requests.audit import AuditEntry
from bot.errors import (
    ChatMissingScope,
    ChatNotAllowed,
    ChatNotInChannel,
    ChatRateLimited,
    ChatRejected,
    ChatUncertain,
    ChatUnreachable,
    JobApiBusy,
    JobApiFailed,
    JobApiNotAllowed,
    JobApiRejected,
    JobApiUncertain,
    JobApiUnreachable,
    JobApiUnreadable,
    JobGone,
    NoSuchProject,
    NotTheJobApi,
)
from bot.store.upkeep.backlog import Backlog

OK = "ok"
OTHER = "other"
_OUTCOMES: dict[type[BaseException], str] = {
    ChatMissingScope: "missing_scope",
    ChatNotAllowed: "not_allowed",
    ChatNotInChannel: "not_in_channel",
    ChatRateLimited: "rate_limited",
    ChatRejected: "rejected",
    ChatUncertain: "uncertain",
    ChatUnreachable: "unreachable",
    JobApiBusy: "busy",
    JobApiFailed: "failed",
    JobApiNotAllowed: "not_allowed",
    JobApiRejected: "rejected",
    JobApiUncertain: "uncertain",
    JobApiUnreachable: "unreachable",
    JobApiUnreadable: "unreadable",
    JobGone: "gone",
    NotTheJobApi: "unreachable",
    NoSuchProject: "no_such_project",
}


def outcome_of(error: BaseException | None) -> str:
    """Returns how a call ended, as one of a few words."""
    return OK if error is None else _OUTCOMES.get(type(error), OTHER)


class Counts:
    """Takes note of what happens. Times are in seconds; `error` is why a call failed."""

    def slack_called(self, method: str, error: BaseException | None, seconds: float) -> None:
        """A call of Slack has ended."""

    def job_api_called(self, operation: str, error: BaseException | None, seconds: float) -> None:
        """A call of a job API has ended."""

    def polled(self, outcome: str) -> None:
        """A job was polled: `changed`, `unchanged` or `failed`."""

    def delivered(self, kind: str, error: BaseException | None) -> None:
        """A notice was delivered, or a try has failed."""

    def acknowledged(self, status: int, seconds: float) -> None:
        """A payload of Slack was answered."""

    def committed(self, entries: Sequence[AuditEntry], takeovers: int) -> None:
        """A transaction was committed, with these audit entries and rows claimed whose lease had run out."""

    def page(
        self, readings: Callable[[], Readings], read_backlog: Callable[[], Awaitable[Backlog]]
    ) -> Callable[[], Awaitable[bytes]] | None:
        """Returns what renders the counts, the state of this process and what waits in the database; None if nothing is
        counted.
        """
