"""What a process counts, and what a request for its metrics reads."""

import re
import shutil
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from bot.domain.findings import FindingStatus
from bot.domain.requests.audit import AuditEntry
from bot.errors import ChatError, JobApiError
from bot.jobapi.models import SeenJob
from bot.ports.job_api import JobApi
from bot.queue.engine import sqlite_path
from bot.runtime.health import ComponentStatus
from bot.slack.receiving.connection_keeper import SocketHealth
from bot.store.condition import Backlog

P = ParamSpec("P")
T = TypeVar("T")
OK = "ok"
OTHER = "other"


def outcome_of(error: BaseException | None) -> str:
    """Returns how a call ended: `ok`, the name of the error's class without what failed, or `other`."""
    if error is None:
        return OK
    if not isinstance(error, ChatError | JobApiError):
        return OTHER
    name = re.sub("^(Chat|JobApi|Job)", "", type(error).__name__)
    return re.sub("(?<=[a-z])([A-Z])", r"_\1", name).lower()


@dataclass(frozen=True)
class Readings:
    """The state of a process. Without Socket Mode there is no `socket`, and `free_bytes` is unknown of PostgreSQL.
    `setup_faults`: how many of each kind the checks of the setup found.
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


class MeasuredJobApi:
    """A job API that counts its calls (ports.JobApi)."""

    def __init__(self, job_api: JobApi, counts: Counts) -> None:
        self._counts = counts
        self.can_cancel, self.takes_files = job_api.can_cancel, job_api.takes_files
        self.create = self._counted("create", job_api.create)
        self.send_message = self._counted("message", job_api.send_message)
        self.get = self._counted("get", job_api.get)
        self._look = self._counted("get", job_api.look)
        self.cancel = self._counted("cancel", job_api.cancel)
        self.discard = self._counted("discard", job_api.discard)
        self.upload = self._counted("upload", job_api.upload)

    async def look(self, project: str, job_id: str, *, unless: bytes = b"") -> SeenJob | None:
        """See JobApi. Each is a poll."""
        try:
            seen = await self._look(project, job_id, unless=unless)
        except JobApiError:
            self._counts.polled("failed")
            raise
        self._counts.polled("unchanged" if seen is None else "changed")
        return seen

    def _counted(
        self, operation: str, call: Callable[P, Coroutine[Any, Any, T]]
    ) -> Callable[P, Coroutine[Any, Any, T]]:
        async def counted(*args: P.args, **kwargs: P.kwargs) -> T:
            began = time.perf_counter()
            ended_with: BaseException | None = None
            try:
                return await call(*args, **kwargs)
            except BaseException as error:
                ended_with = error
                raise
            finally:
                self._counts.job_api_called(operation, ended_with, time.perf_counter() - began)

        return counted
