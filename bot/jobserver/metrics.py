"""What the job server counts as it works, and shows in Prometheus' format.

A project has the name that its operator gave it; no other label is an id or what somebody wrote.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import partial

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
    """Counts what the runs of all projects do. The agent of each is told by `serve`."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._agents: dict[str, str] = {}
        counter, gauge = partial(Counter, registry=self._registry), partial(Gauge, registry=self._registry)
        of_run = ("project", "agent", "outcome")
        self._runs = counter("pagehand_jobserver_runs", "Runs that have ended; crashed: by the server's fault.", of_run)
        refused = "Connections and requests that runs were refused."
        self._refused = counter("pagehand_jobserver_egress_refusals", refused, ("project",))
        tokens = "Tokens sent to models and answered, where told."
        self._tokens = counter("pagehand_jobserver_tokens", tokens, ("project",))
        waiting = "Instructions that wait or run."
        self._instructions = gauge("pagehand_jobserver_instructions", waiting, ("project", "state"))
        oldest = "For how long the oldest queued instruction waits."
        self._oldest = gauge("pagehand_jobserver_queued_seconds", oldest, ("project",))

    def serve(self, project: str, agent: str) -> None:
        """A project is served from now on, by this agent."""
        self._agents[project] = agent
        for end in RunEnd:
            self._runs.labels(project, agent, end.value)
        self._refused.labels(project)
        self._tokens.labels(project)

    def ended(self, project: str, end: RunEnd) -> None:
        """A run has ended."""
        self._runs.labels(project, self._agents.get(project, "other"), end.value).inc()

    def refused(self, project: str, times: int) -> None:
        """A run was refused other hosts, or requests to its model, so many times."""
        self._refused.labels(project).inc(times)

    def took(self, project: str, tokens: int) -> None:
        """A model was sent, or answered, so many tokens."""
        self._tokens.labels(project).inc(max(tokens, 0))

    def render(self, backlog: Mapping[str, InstructionBacklog]) -> bytes:
        """Returns all metrics."""
        self._instructions.clear()  # of what others have served meanwhile
        self._oldest.clear()
        for project in {*self._agents, *backlog}:
            waiting = backlog.get(project, InstructionBacklog())
            self._instructions.labels(project, "queued").set(waiting.queued)
            self._instructions.labels(project, "running").set(waiting.running)
            self._oldest.labels(project).set(waiting.oldest_seconds)
        return bytes(generate_latest(self._registry))
