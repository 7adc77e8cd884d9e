"""What the job server counts as it works, and shows in Prometheus' format. No label is an id or what somebody wrote."""

from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from bot.jobserver.store.records import InstructionBacklog


class RunEnd(StrEnum):
    """How a run of an instruction ended."""

    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    CRASHED = "crashed"
    """By a fault of the job server's own."""


class RunCounts:
    """Counts the runs of an agent, by its name."""

    def __init__(self, agent: str = "other") -> None:
        self._registry = registry = CollectorRegistry()
        self._agent = agent
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
        """A run has ended."""
        self._runs.labels(self._agent, end.value).inc()

    def refused(self, times: int) -> None:
        """A run was refused other hosts, or requests to its model, so many times."""
        self._refused.inc(times)

    def took(self, tokens: int) -> None:
        """A model was sent, or answered, so many tokens."""
        self._tokens.inc(max(tokens, 0))

    def render(self, backlog: InstructionBacklog) -> bytes:
        """Returns all metrics."""
        self._instructions.labels("queued").set(backlog.queued)
        self._instructions.labels("running").set(backlog.running)
        self._oldest.set(backlog.oldest_seconds)
        return bytes(generate_latest(self._registry))
