"""What a process counts, and its metrics in Prometheus' format. Every label has few values: none is an id, and none is
what people wrote.
"""

import asyncio
import re
import shutil
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from bot.domain.findings import FindingStatus
from bot.domain.jobs.job import ACTIVE
from bot.domain.requests.audit import AuditEntry
from bot.domain.slack_limits import SlackLimits
from bot.errors import ChatError, JobApiError, StoreError
from bot.jobapi.models import TERMINAL, SeenJob
from bot.ports.job_api import JobApi
from bot.queue.engine import sqlite_path
from bot.runtime.health import ComponentStatus
from bot.slack.receiving.connection_keeper import SocketHealth
from bot.store.condition import Backlog

P = ParamSpec("P")
T = TypeVar("T")
OK = "ok"
OTHER = "other"
BACKLOG_SECONDS = 10.0
"""For how long what was read from the database is shown again."""
_READ_TIMEOUT = 5.0
"""Seconds that a scrape waits for the database."""
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
_JOB_STATES = frozenset({ACTIVE, *TERMINAL})


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
    """Counts into a registry of its own, and renders the counts, the state of this process, and the queues in the
    database, whose age is told by `monotonic`. Times are in seconds; `error` is why a call failed.
    """

    def __init__(self, limits: SlackLimits, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry = CollectorRegistry()
        self._limits = limits
        self._monotonic = monotonic
        self._backlog: Backlog | None = None
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()
        counter, timer = partial(Counter, registry=registry), partial(Histogram, buckets=_SECONDS, registry=registry)
        self._requests = counter("pagehand_requests", "What people asked for.", ("way_in", "outcome"))
        self._acknowledgements = timer(
            "pagehand_acknowledgement_seconds",
            "Time until a payload of Slack was answered, by HTTP status; Slack waits for 3 s.",
            ("status",),
        )
        self._slack = timer("pagehand_slack_call_seconds", "Calls of Slack.", ("method", "outcome"))
        self._job_api = timer("pagehand_job_api_call_seconds", "Calls of job APIs.", ("operation", "outcome"))
        self._polls = counter("pagehand_polls", "Polls of jobs.", ("outcome",))
        self._notices = counter("pagehand_notices", "Tries to deliver notices to Slack.", ("kind", "outcome"))
        self._takeovers = counter("pagehand_lease_takeovers", "Rows claimed whose lease another process let run out.")

    def slack_called(self, method: str, error: BaseException | None, seconds: float) -> None:
        """A call of Slack has ended."""
        self._slack.labels(method, outcome_of(error)).observe(seconds)

    def job_api_called(self, operation: str, error: BaseException | None, seconds: float) -> None:
        """A call of a job API has ended."""
        self._job_api.labels(operation, outcome_of(error)).observe(seconds)

    def polled(self, outcome: str) -> None:
        """A job was polled: `changed`, `unchanged` or `failed`."""
        self._polls.labels(outcome).inc()

    def delivered(self, kind: str, error: BaseException | None) -> None:
        """A notice was delivered, or a try has failed."""
        self._notices.labels(kind, outcome_of(error)).inc()

    def acknowledged(self, status: int, seconds: float) -> None:
        """A payload of Slack was answered."""
        self._acknowledgements.labels(str(status)).observe(seconds)

    def committed(self, entries: Sequence[AuditEntry], takeovers: int) -> None:
        """A transaction was committed, with these audit entries and rows claimed whose lease had run out."""
        for entry in entries:
            self._requests.labels(entry.way_in or OTHER, entry.action.value).inc()
        self._takeovers.inc(takeovers)

    def page(
        self, readings: Callable[[], Readings], read_backlog: Callable[[], Awaitable[Backlog]]
    ) -> Callable[[], Awaitable[bytes]]:
        """Returns what renders the counts, the state of this process and what waits in the database; that it cannot be
        read, if `read_backlog` raises StoreError.
        """
        self._readings = readings
        self._registry.register(self)

        async def render() -> bytes:
            async with self._reading:
                if self._monotonic() - self._read_at >= BACKLOG_SECONDS:
                    self._backlog = await _read(read_backlog)
                    self._read_at = self._monotonic()
            return bytes(generate_latest(self._registry))

        return render

    def collect(self) -> Iterator[Metric]:
        """Yields the values that are read instead of counted; called by the registry."""
        yield from _process(self._readings())
        readable = self._backlog is not None
        yield GaugeMetricFamily("pagehand_database_readable", "Whether the database could be read.", value=readable)
        if self._backlog is not None:
            yield from _waiting(self._backlog)
            made, limits = self._backlog.slack_calls, self._limits.methods
            left = {method: max(limit.calls - made.get(method, 0), 0) for method, limit in limits.items()}
            words = "Calls of a Slack method that all processes together may make now."
            yield _gauges("pagehand_slack_budget_calls", words, "method", left)


async def _read(read_backlog: Callable[[], Awaitable[Backlog]]) -> Backlog | None:
    try:
        async with asyncio.timeout(_READ_TIMEOUT):
            return await read_backlog()
    except (StoreError, TimeoutError):
        return None


def _process(readings: Readings) -> Iterator[Metric]:
    words = "Whether requests of Slack arrive and are recorded."
    yield GaugeMetricFamily("pagehand_ready", words, value=readings.ready)
    failing = {each.name: each.failing_seconds for each in readings.parts}
    words = "For how long a part has been failing; 0: it works."
    yield _gauges("pagehand_part_failing_seconds", words, "part", failing)
    faults = {kind.value: readings.setup_faults.get(kind, 0) for kind in (FindingStatus.ERROR, FindingStatus.WARNING)}
    yield _gauges("pagehand_setup_faults", "Faults that the checks of the setup found.", "status", faults)
    if readings.socket is not None:
        words = "Open connections to Slack."
        yield GaugeMetricFamily("pagehand_socket_connections", words, value=readings.socket.connected)
        words = "Connections to Slack that were opened in the place of another."
        yield CounterMetricFamily("pagehand_socket_reconnects", words, value=readings.socket.reconnects)
    if readings.free_bytes is not None:
        words = "Free space where the SQLite database is."
        yield GaugeMetricFamily("pagehand_database_free_bytes", words, value=readings.free_bytes)


def _waiting(backlog: Backlog) -> Iterator[Metric]:
    rows = {each.queue: each.rows for each in backlog.queues}
    yield _gauges("pagehand_queue_rows", "Open rows of a queue, whether due or not.", "queue", rows)
    overdue = {each.queue: each.overdue for each in backlog.queues}
    yield _gauges("pagehand_queue_overdue_seconds", "For how long a queue's oldest row was due.", "queue", overdue)
    jobs = dict.fromkeys((*sorted(_JOB_STATES), OTHER), 0)
    for status, count in backlog.jobs.items():
        jobs[status if status in _JOB_STATES else OTHER] += count
    yield _gauges("pagehand_jobs", "Jobs that are polled, by their last known status.", "state", jobs)


def _gauges(name: str, words: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, words, labels=[label])
    for label_value, value in values.items():
        family.add_metric([label_value], value)
    return family


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
        self.create = self._counted("create", job_api.create)
        self.send_message = self._counted("message", job_api.send_message)
        self.get = self._counted("get", job_api.get)
        self._look = self._counted("get", job_api.look)
        self.cancel = self._counted("cancel", job_api.cancel)
        self.discard = self._counted("discard", job_api.discard)
        self.upload = self._counted("upload", job_api.upload)
        self.picture = self._counted("picture", job_api.picture)

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
