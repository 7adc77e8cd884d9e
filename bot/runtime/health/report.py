"""Health checks: how each component is, what follows for the whole, and the log of it. `health_page` serves them."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

logger = logging.getLogger(__name__)

GRACE_SECONDS = 300.0
"""How long a component may fail before the process counts as unhealthy."""
LOG_EVERY = 5.0
"""Seconds between two looks for what is to be logged."""

Warn = Callable[[], str]
"""Returns what an operator should know though everything works; empty where there is nothing."""


@dataclass(frozen=True)
class ComponentStatus:
    """How one component is.

    Attributes:
        name: What the operator reads.
        failing_seconds: How long it has not worked; 0 while it does.
        reason: Why it does not work.
        critical: While it fails, the process is not ready.
        grace_seconds: How long it may fail before the process is unhealthy; None for the general time.
    """

    name: str
    failing_seconds: float = 0.0
    reason: str = ""
    critical: bool = False
    grace_seconds: float | None = None

    def ok(self, grace_seconds: float = GRACE_SECONDS) -> bool:
        """Whether it works, or has failed so briefly that it may recover by itself."""
        grace = grace_seconds if self.grace_seconds is None else self.grace_seconds
        return self.failing_seconds == 0 or self.failing_seconds < grace


class Health:
    """The health of a process. Times are in seconds.

    Args:
        statuses: Returns how the components are now.
        warnings: What does not keep the process from working.
        grace: How long a component may fail before the process is unhealthy.
        log_every: The time between two looks for what is to be logged.
    """

    def __init__(
        self,
        statuses: Callable[[], Iterable[ComponentStatus]],
        warnings: Sequence[Warn] = (),
        *,
        grace: float = GRACE_SECONDS,
        log_every: float = LOG_EVERY,
    ) -> None:
        self._statuses = statuses
        self._warnings = warnings
        self._grace = grace
        self._log_every = log_every
        self._logged: set[str] = set()

    def report(self) -> Mapping[str, object]:
        """Returns the whole picture as JSON: `ok`, each component in words, and the warnings."""
        statuses = list(self._statuses())
        return {
            "ok": all(status.ok(self._grace) for status in statuses),
            "parts": {status.name: _words(status) for status in statuses},
            "warnings": [words for warn in self._warnings if (words := warn())],
        }

    def readiness(self) -> Mapping[str, object]:
        """Returns, as JSON, whether a request of Slack's would arrive and be recorded at this moment."""
        critical = [status for status in self._statuses() if status.critical]
        return {
            "ok": not any(status.failing_seconds for status in critical),
            "parts": {status.name: _words(status) for status in critical},
        }

    def log_changes(self) -> None:
        """Logs each component that has failed for too long, once, and its recovery."""
        statuses = {status.name: status for status in self._statuses()}
        for status in statuses.values():
            if status.failing_seconds >= self._grace and status.name not in self._logged:
                self._logged.add(status.name)
                minutes = status.failing_seconds / 60
                logger.error("%s has not worked for %.0f minutes: %s", status.name, minutes, status.reason)
        for name in sorted(self._logged):
            if name not in statuses or statuses[name].failing_seconds == 0:
                self._logged.discard(name)
                logger.warning("%s works again", name)

    async def run(self) -> None:
        """Logs changes, for ever."""
        while True:
            self.log_changes()
            await asyncio.sleep(self._log_every)


def _words(status: ComponentStatus) -> str:
    seconds = status.failing_seconds
    return "works" if seconds == 0 else f"has not worked for {seconds:.0f} s: {status.reason}"
