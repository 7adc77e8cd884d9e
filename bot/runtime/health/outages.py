"""Outages: from the first failure until everything has worked for a while. Their beginning and end are logged.

The health recovers with the first success. The log waits longer, so that something that fails and works by turns does
not fill it.

Recording has an outage of its own, because a request must be in the database before it is acknowledged.
"""

import logging
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

from bot.errors import StoreError, UnreadableRow
from bot.runtime.health.report import ComponentStatus

logger = logging.getLogger(__name__)

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


class OutageLog:
    """Logs the outages of one thing, which several trackers may watch: one line when the first of their outages begins,
    and one when the last is over.

    Args:
        name: What fails.
        began: The level of the first line.
        ended: The level of the second line.
    """

    def __init__(self, name: str, *, began: int = logging.ERROR, ended: int = logging.WARNING) -> None:
        self._name = name
        self._began = began
        self._ended = ended
        self._ongoing: set[Outage] = set()
        self._since: float | None = None

    def failed(self, outage: "Outage", since: float, reason: object) -> None:
        """Records a failure in an outage, and logs the first one, unless another outage is ongoing."""
        if not self._ongoing:
            self._since = since
            logger.log(self._began, "%s: not working, will keep trying: %s", self._name, reason)
        self._ongoing.add(outage)

    def expired(self, outage: "Outage") -> None:
        """Records that an outage is over although nothing has succeeded since. The next success is logged."""
        self._ongoing.discard(outage)

    def works(self, outage: "Outage", now: float) -> None:
        """Records that an outage is over, or that something succeeds without one. Logs the first success after the
        last outage; `now` is its time.
        """
        self._ongoing.discard(outage)
        if self._since is not None and not self._ongoing:
            logger.log(self._ended, "%s: works again after %.0f s", self._name, now - self._since)
            self._since = None


class OutageLogs(defaultdict[str, OutageLog]):
    """The logs of the services that a process calls, by their names. Each is shared by all who call that service."""

    def __missing__(self, name: str) -> OutageLog:
        self[name] = log = OutageLog(name, began=logging.WARNING, ended=logging.INFO)
        return log


class Outage:
    """Tracks whether something is failing, for how long, and why.

    Args:
        name: What fails: for the log, or the log itself if others track the same thing.
        monotonic: A clock, in seconds.
        recovery: How long it has to work before the outage is over, in seconds.
    """

    def __init__(
        self, name: str | OutageLog, monotonic: Callable[[], float], *, recovery: float = RECOVERY_SECONDS
    ) -> None:
        self.reason: object = ""
        self._log = OutageLog(name) if isinstance(name, str) else name
        self._monotonic = monotonic
        self._recovery = recovery
        self._since: float | None = None
        self._well_since: float | None = None
        self._expires_at = 0.0

    @property
    def ongoing(self) -> bool:
        """Whether there is an outage now."""
        return self._since is not None and not self._over()

    def seconds(self) -> float:
        """Returns how long the outage has lasted, up to the first success after it; 0 if there is none."""
        if self._since is None or not self.ongoing:
            return 0.0
        if self._well_since is None:
            return self._monotonic() - self._since
        return max(self._well_since - self._since, _SHORTEST)

    def status(self, name: str) -> ComponentStatus:
        """Returns the status of what is tracked, for the health; `name` is shown to operators."""
        recovering = self._well_since is not None
        return ComponentStatus(name, self.seconds(), str(self.reason), recovering=recovering)

    def record_failure(self, reason: object, *, quiet: bool = False, retry_after: float | None = None) -> None:
        """Records a failure, and logs the first one of an outage that is not `quiet`.

        Args:
            reason: Shown and logged as `str(reason)`.
            quiet: The failure is logged elsewhere, or not worth logging.
            retry_after: Seconds in which no success can be expected.
        """
        self.end_if_over()
        now = self._monotonic()
        self._since = now if self._since is None else self._since
        self.reason, self._well_since = reason, None
        self._expires_at = now + EXPIRY_SECONDS + (retry_after or 0.0)
        if not quiet:
            self._log.failed(self, self._since, reason)

    def record_success(self) -> None:
        """Records a success. One is enough for the health, but does not end the outage: the next attempt may fail."""
        if self._since is None:
            self._log.works(self, self._monotonic())
        elif self._well_since is None:
            self._well_since = self._monotonic()
        self.end_if_over()

    def end_if_over(self) -> None:
        """Clears an outage that is over, and logs its end if its beginning was logged."""
        if self._since is None or not self._over():
            return
        if self._well_since is None:
            self._log.expired(self)
        else:
            self._log.works(self, self._well_since)
        self.reason, self._since, self._well_since = "", None, None

    def _over(self) -> bool:
        now = self._monotonic()
        return now > self._expires_at or (self._well_since is not None and now >= self._well_since + self._recovery)


RECORDING_RECOVERY_SECONDS = 30.0
"""How long recording has to work before its outage is over."""
WARNING_SECONDS = 3600.0
"""How long the health report warns about requests that could not be recorded."""


class RecordingHealth:
    """Counts requests that could not be recorded. `monotonic` is a clock in seconds; `recovery` is in seconds."""

    def __init__(self, monotonic: Callable[[], float], *, recovery: float = RECORDING_RECOVERY_SECONDS) -> None:
        self._monotonic = monotonic
        self._outage = Outage("recording", monotonic, recovery=recovery)
        self._failed = 0
        self._failed_at = 0.0

    def record_success(self) -> None:
        """Records a successful write. An answered request is not enough, because it may not have written anything."""
        self._outage.record_success()

    def record_failure(self, error: Exception) -> None:
        """Records a failed write. Errors other than the database's are ignored: they may concern a single request."""
        if isinstance(error, StoreError) and not isinstance(error, UnreadableRow):
            self._outage.record_failure(error)

    def missed(self, error: Exception) -> None:
        """Records that a person's request was lost."""
        now = self._monotonic()
        self._failed = self._failed + 1 if now - self._failed_at < WARNING_SECONDS else 1
        self._failed_at = now
        self.record_failure(error)

    def failing(self) -> bool:
        """Returns whether writing to the database is failing."""
        return self._outage.ongoing

    def status(self) -> ComponentStatus:
        """Returns the status of recording. It has no grace period, because every request fails."""
        return replace(self._outage.status("recording"), critical=True, grace_seconds=0.0)

    def warning(self) -> str:
        """Returns a warning about recently lost requests for the health report; empty if there are none."""
        ago = self._monotonic() - self._failed_at
        if not self._failed or ago > WARNING_SECONDS:
            return ""
        return (
            f"{self._failed} of Slack's requests could not be recorded when they arrived, the last one {ago / 60:.0f} "
            "min ago. Slack delivers replies again; people who used a command or button were told."
        )
