"""The metrics in Prometheus' format. Every label has few values: none is an id, and none is what people wrote."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from bot.app.metrics import OTHER, Counts, Readings, outcome_of
from bot.domain.findings import FindingStatus
from bot.domain.jobs.job import ACTIVE
from bot.domain.requests.audit import AuditEntry
from bot.domain.slack_limits import SlackLimits
from bot.errors import StoreError
from bot.jobapi.models import TERMINAL
from bot.store.condition import Backlog

BACKLOG_SECONDS = 10.0
"""For how long what was read from the database is shown again."""
_READ_TIMEOUT = 5.0
"""Seconds that a scrape waits for the database."""
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
_JOB_STATES = frozenset({ACTIVE, *TERMINAL})


class PrometheusCounts(Counts):
    """Counts into a registry of its own, and serves the counts, the state of this process, and the queues in the
    database, whose age is told by `monotonic`, in seconds.
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
        """See Counts."""
        self._slack.labels(method, outcome_of(error)).observe(seconds)

    def job_api_called(self, operation: str, error: BaseException | None, seconds: float) -> None:
        """See Counts."""
        self._job_api.labels(operation, outcome_of(error)).observe(seconds)

    def polled(self, outcome: str) -> None:
        """See Counts."""
        self._polls.labels(outcome).inc()

    def delivered(self, kind: str, error: BaseException | None) -> None:
        """See Counts."""
        self._notices.labels(kind, outcome_of(error)).inc()

    def acknowledged(self, status: int, seconds: float) -> None:
        """See Counts."""
        self._acknowledgements.labels(str(status)).observe(seconds)

    def committed(self, entries: Sequence[AuditEntry], takeovers: int) -> None:
        """See Counts."""
        for entry in entries:
            self._requests.labels(entry.way_in or OTHER, entry.action.value).inc()
        self._takeovers.inc(takeovers)

    def page(
        self, readings: Callable[[], Readings], read_backlog: Callable[[], Awaitable[Backlog]]
    ) -> Callable[[], Awaitable[bytes]]:
        """See Counts. If `read_backlog` raises StoreError, that is shown, too."""
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
