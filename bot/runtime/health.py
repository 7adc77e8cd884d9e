"""The health of a process: outages, from the first failure until everything has worked for a while; the status of each
component, the health checks' reports, and the log of changes.

The health recovers with the first success. The log waits longer, so that something that fails and works by turns does
not fill it. Recording has an outage of its own, because a request must be in the database before it is acknowledged.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace

from bot.errors import StoreError, UnreadableRow

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


@dataclass(eq=False)
class Health:
    """The health of a process. Times are in seconds.

    Args:
        statuses: Returns the current statuses of the components.
        warnings: Problems that do not make the process unhealthy.
        grace: How long a component may fail before the process is unhealthy.
        log_every: The time between checks for changes to log.
    """

    statuses: Callable[[], Iterable[ComponentStatus]]
    warnings: Sequence[Warn] = ()
    _: KW_ONLY
    grace: float = GRACE_SECONDS
    log_every: float = LOG_EVERY
    _logged: set[str] = field(default_factory=set, init=False)

    def report(self) -> Mapping[str, object]:
        """Returns the full report as JSON: `ok`, a description of each component, and the warnings."""
        statuses = list(self.statuses())
        return {
            "ok": all(status.ok(self.grace) for status in statuses),
            "parts": {status.name: _words(status) for status in statuses},
            "warnings": [words for warn in self.warnings if (words := warn())],
        }

    def readiness(self) -> Mapping[str, object]:
        """Returns, as JSON, whether a request from Slack would arrive and be recorded now."""
        critical = [status for status in self.statuses() if status.critical]
        return {
            "ok": not any(status.failing for status in critical),
            "parts": {status.name: _words(status) for status in critical},
        }

    def log_changes(self) -> None:
        """Logs once for each component that has failed for too long, and once when it recovers."""
        statuses = {status.name: status for status in self.statuses()}
        for status in statuses.values():
            if status.failing_seconds >= self.grace and status.name not in self._logged:
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
            await asyncio.sleep(self.log_every)


def _words(status: ComponentStatus) -> str:
    return f"has not worked for {status.failing_seconds:.0f} s: {status.reason}" if status.failing else "works"


RECOVERY_SECONDS = 90.0
"""How long everything has to work, from the first success, before an outage is over. Longer than any lease, because
work that failed under a lease is retried when it expires, and fails again if nothing has changed.
"""
SERVICE_RECOVERY_SECONDS = 20.0
"""The same for Slack and the job APIs. Failures that are further apart are separate outages."""
EXPIRY_SECONDS = 120.0
"""How long after the last failure an outage is over even without a success, because the work may be settled or done by
another process. Longer than the wait before any retry.
"""
_SHORTEST = 0.001
"""Minimum length of an outage in seconds, because 0 means that there is none."""


@dataclass
class _Seen:
    """An outage as one observer sees it: `well_since` is the first success after the last failure."""

    since: float
    reason: object = ""
    expires_at: float = 0.0
    well_since: float | None = None
    logged: bool = False

    def is_over(self, now: float, recovery: float) -> bool:
        return now > self.expires_at or (self.well_since is not None and now >= self.well_since + recovery)

    def seconds(self, now: float) -> float:
        return now - self.since if self.well_since is None else max(self.well_since - self.since, _SHORTEST)


@dataclass(eq=False)
class Outage:
    """Tracks whether something is failing, for how long, and why, as one or several observers see it. The log gets one
    line when the first of their outages begins, and one when the last is over.

    Args:
        name: What fails, for the log.
        monotonic: A clock, in seconds.
        recovery: How long it has to work before an outage is over, in seconds.
        levels: The levels of the two log lines.
    """

    name: str
    monotonic: Callable[[], float]
    _: KW_ONLY
    recovery: float = RECOVERY_SECONDS
    levels: tuple[int, int] = (logging.ERROR, logging.WARNING)
    _seen: dict[str, _Seen] = field(default_factory=dict, init=False)
    _logged_since: float | None = field(default=None, init=False)

    def ongoing(self) -> bool:
        """Whether there is an outage now."""
        return any(not seen.is_over(self.monotonic(), self.recovery) for seen in self._seen.values())

    def status(self, name: str, *, by: str | None = None) -> ComponentStatus:
        """Returns the status for the health, as one observer sees it, or as whoever sees it worst. `name` is shown to
        operators. An outage counts up to the first success after it.
        """
        now = self.monotonic()
        outages = [seen for observer, seen in self._seen.items() if by in {None, observer}]
        statuses = [
            ComponentStatus(name, seen.seconds(now), str(seen.reason), recovering=seen.well_since is not None)
            for seen in outages
            if not seen.is_over(now, self.recovery)
        ]
        return max(statuses, key=ComponentStatus.severity, default=ComponentStatus(name))

    def record_failure(
        self, reason: object, *, by: str = "", quiet: bool = False, retry_after: float | None = None
    ) -> None:
        """Records a failure, and logs the first one of an outage that is not `quiet`.

        Args:
            reason: Shown and logged as `str(reason)`.
            by: Who sees it.
            quiet: The failure is logged elsewhere, or not worth logging.
            retry_after: Seconds in which no success can be expected.
        """
        self.end_if_over()
        now = self.monotonic()
        seen = self._seen.setdefault(by, _Seen(now))
        seen.reason, seen.well_since = reason, None
        seen.expires_at = now + EXPIRY_SECONDS + (retry_after or 0.0)
        if quiet:
            return
        if not self._is_logged():
            self._logged_since = seen.since
            logger.log(self.levels[0], "%s: not working, will keep trying: %s", self.name, reason)
        seen.logged = True

    def record_success(self, *, by: str = "") -> None:
        """Records a success. One is enough for the health, but does not end the outage: the next attempt may fail."""
        now, seen = self.monotonic(), self._seen.get(by)
        if seen is None:
            self._log_end(now)
        elif seen.well_since is None:
            seen.well_since = now
        self.end_if_over()

    def end_if_over(self) -> None:
        """Forgets outages that are over, and logs the end of the last one whose beginning was logged: with the next
        success if it has only expired.
        """
        for by, seen in list(self._seen.items()):
            if seen.is_over(self.monotonic(), self.recovery):
                del self._seen[by]
                if seen.well_since is not None:
                    self._log_end(seen.well_since)

    def _is_logged(self) -> bool:
        return any(seen.logged for seen in self._seen.values())

    def _log_end(self, now: float) -> None:
        if self._logged_since is not None and not self._is_logged():
            logger.log(self.levels[1], "%s: works again after %.0f s", self.name, now - self._logged_since)
            self._logged_since = None


RECORDING_RECOVERY_SECONDS = 30.0
"""How long recording has to work before its outage is over."""


class RecordingHealth:
    """Tells whether requests can be recorded. `monotonic` is a clock in seconds; `recovery` is in seconds."""

    def __init__(self, monotonic: Callable[[], float], *, recovery: float = RECORDING_RECOVERY_SECONDS) -> None:
        self._outage = Outage("recording", monotonic, recovery=recovery)

    def record_success(self) -> None:
        """Records a successful write. An answered request is not enough, because it may not have written anything."""
        self._outage.record_success()

    def record_failure(self, error: Exception) -> None:
        """Records a failed write. Errors other than the database's are ignored: they may concern a single request."""
        if isinstance(error, StoreError) and not isinstance(error, UnreadableRow):
            self._outage.record_failure(error)

    def failing(self) -> bool:
        """Returns whether writing to the database is failing."""
        return self._outage.ongoing()

    def status(self) -> ComponentStatus:
        """Returns the status of recording. It has no grace period, because every request fails."""
        return replace(self._outage.status("recording"), critical=True, grace_seconds=0.0)
