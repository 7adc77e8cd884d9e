"""Health checks: the status of each component, the status of the process, and the log of changes."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

logger = logging.getLogger(__name__)

GRACE_SECONDS = 300.0
"""How long a component may fail before the process is unhealthy."""
LOG_EVERY = 5.0
"""Seconds between checks for changes to log."""

Warn = Callable[[], str]
"""Returns something an operator should know even though everything works; empty if there is nothing."""


@dataclass(frozen=True)
class ComponentStatus:
    """The status of one component.

    Attributes:
        name: Shown to operators.
        failing_seconds: How long it has not worked; 0 if it works.
        recovering: It works again, but not yet for so long that its outage is over.
        reason: Why it does not work.
        critical: Whether the process is not ready while it fails.
        grace_seconds: How long it may fail before the process is unhealthy; None for the default.
    """

    name: str
    failing_seconds: float = 0.0
    reason: str = ""
    critical: bool = False
    grace_seconds: float | None = None
    recovering: bool = False

    @property
    def failing(self) -> bool:
        """Whether it does not work now."""
        return self.failing_seconds > 0 and not self.recovering

    def severity(self) -> tuple[bool, float, bool]:
        """Orders statuses: what does not work now comes last, and among those the longest outage."""
        return self.failing, self.failing_seconds, bool(self.reason)

    def ok(self, grace_seconds: float = GRACE_SECONDS) -> bool:
        """Returns whether it works, or has failed so briefly that it may recover on its own."""
        grace = grace_seconds if self.grace_seconds is None else self.grace_seconds
        return not self.failing or self.failing_seconds < grace


class Health:
    """The health of a process. Times are in seconds.

    Args:
        statuses: Returns the current statuses of the components.
        warnings: Problems that do not make the process unhealthy.
        grace: How long a component may fail before the process is unhealthy.
        log_every: The time between checks for changes to log.
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
        """Returns the full report as JSON: `ok`, a description of each component, and the warnings."""
        statuses = list(self._statuses())
        return {
            "ok": all(status.ok(self._grace) for status in statuses),
            "parts": {status.name: _words(status) for status in statuses},
            "warnings": [words for warn in self._warnings if (words := warn())],
        }

    def readiness(self) -> Mapping[str, object]:
        """Returns, as JSON, whether a request from Slack would arrive and be recorded now."""
        critical = [status for status in self._statuses() if status.critical]
        return {
            "ok": not any(status.failing for status in critical),
            "parts": {status.name: _words(status) for status in critical},
        }

    def log_changes(self) -> None:
        """Logs once for each component that has failed for too long, and once when it recovers."""
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
        """Logs changes, forever."""
        while True:
            self.log_changes()
            await asyncio.sleep(self._log_every)


def _words(status: ComponentStatus) -> str:
    return f"has not worked for {status.failing_seconds:.0f} s: {status.reason}" if status.failing else "works"
