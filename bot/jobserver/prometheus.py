"""The job server's metrics in Prometheus' format. No label is an id or what somebody wrote."""

from collections.abc import Awaitable, Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from bot.jobserver.metrics import RunCounts, RunEnd
from bot.jobserver.store.records import InstructionBacklog


class PrometheusRuns(RunCounts):
    """Counts the runs of an agent, by its name; `render` shows them with what `read_backlog` returns."""

    def __init__(self, agent: str, read_backlog: Callable[[], Awaitable[InstructionBacklog]]) -> None:
        self._registry = registry = CollectorRegistry()
        self._agent = agent
        self._read_backlog = read_backlog
        self._runs = Counter(
            "pagehand_jobserver_runs", "Runs of instructions that have ended.", ("agent", "outcome"), registry=registry
        )
        for end in RunEnd:
            self._runs.labels(agent, end.value)
        self._refused = Counter(
            "pagehand_jobserver_egress_refusals", "Connections and requests that runs were refused.", registry=registry
        )
        self._tokens = Counter(
            "pagehand_jobserver_tokens", "Tokens sent to models and answered, where told.", registry=registry
        )
        self._instructions = Gauge(
            "pagehand_jobserver_instructions", "Instructions that have not ended.", ("state",), registry=registry
        )
        self._oldest = Gauge(
            "pagehand_jobserver_queued_seconds", "For how long the oldest queued instruction waits.", registry=registry
        )

    def ended(self, end: RunEnd) -> None:
        """See RunCounts."""
        self._runs.labels(self._agent, end.value).inc()

    def refused(self, times: int) -> None:
        """See RunCounts."""
        self._refused.inc(times)

    def took(self, tokens: int) -> None:
        """See RunCounts."""
        self._tokens.inc(max(tokens, 0))

    async def render(self) -> bytes:
        """Returns all metrics."""
        backlog = await self._read_backlog()
        self._instructions.labels("queued").set(backlog.queued)
        self._instructions.labels("running").set(backlog.running)
        self._oldest.set(backlog.oldest_seconds)
        return bytes(generate_latest(self._registry))
