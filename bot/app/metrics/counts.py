"""What a process counts, and what a request for its metrics reads."""

import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bot.domain.findings import FindingStatus
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
from bot.runtime.health.report import ComponentStatus
from bot.slack.receiving.transports.connection_keeper import SocketHealth
from bot.store.condition import Backlog
from bot.store.database.engine import sqlite_path

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


@dataclass(frozen=True)
class Readings:
    """The state of a process. Without Socket Mode there is no `socket`, and `free_bytes` is unknown of PostgreSQL.
    `setup_faults`: how many of each kind the checks of the set-up found.
    """

    ready: bool
    parts: Sequence[ComponentStatus]
    socket: SocketHealth | None
    free_bytes: int | None
    setup_faults: Mapping[FindingStatus, int] = field(default_factory=dict)


class Counts:
    """Takes note of what happens. This base class does not, for processes that serve no metrics. Times are in seconds;
    `error` is why a call failed.
    """

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


def free_bytes(database_url: str) -> int | None:
    """Returns the free space where a SQLite file is; None if it is not known."""
    try:
        path = sqlite_path(database_url)
        return shutil.disk_usage(Path(path).resolve().parent).free if path else None
    except (OSError, ValueError):
        return None
