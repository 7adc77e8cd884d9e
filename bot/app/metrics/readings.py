"""The metrics of one process: what it counts, and what a request for them shows."""

import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bot.app.metrics.counts import Counts
from bot.domain.findings import FindingStatus
from bot.domain.slack_limits import SLACK_LIMITS, SlackLimits
from bot.runtime.health.report import ComponentStatus
from bot.slack.receiving.transports.connection_keeper import SocketHealth
from bot.store.database.url import sqlite_path
from bot.store.transaction import Store
from bot.store.upkeep.backlog import Backlog


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


Page = Callable[[Callable[[], Readings], Store], Callable[[], Awaitable[bytes]]]
"""Makes what renders the metrics of a process."""


@dataclass(frozen=True)
class Metrics:
    """Counts, and the page that shows them; None: they are not served, and nothing is counted."""

    counts: Counts = field(default_factory=Counts)
    page: Page | None = None


def open_metrics(*, served: bool, limits: SlackLimits = SLACK_LIMITS) -> Metrics:
    """Returns the metrics of this process."""
    if not served:
        return Metrics()
    from prometheus_client import CollectorRegistry  # noqa: PLC0415 - it is slow to import, and mostly not needed

    from bot.app.metrics.prometheus import PrometheusCounts, PrometheusPage  # noqa: PLC0415 - the same

    registry = CollectorRegistry()

    methods = list(limits.methods)

    def page(readings: Callable[[], Readings], store: Store) -> Callable[[], Awaitable[bytes]]:
        def read() -> Awaitable[Backlog]:
            return store.transact(lambda tx: tx.backlogs.read(methods))

        return PrometheusPage(registry, readings, read, limits).render

    return Metrics(PrometheusCounts(registry, limits), page)


def free_bytes(database_url: str) -> int | None:
    """Returns the free space where a SQLite file is; None if it is not known."""
    try:
        path = sqlite_path(database_url)
        return shutil.disk_usage(Path(path).resolve().parent).free if path else None
    except (OSError, ValueError):
        return None
