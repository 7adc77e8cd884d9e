"""Outages: from the first failure until things have gone well for a while; logged when they begin and when they end.
Recording has one of its own: what people ask for has to be in the database before it is acknowledged.
"""

import logging
from collections.abc import Callable

from bot.errors import StoreError, UnreadableRow
from bot.runtime.health.report import ComponentStatus

logger = logging.getLogger(__name__)

RECOVERY_SECONDS = 90.0
"""How long things go well, from the first success on, before an outage is over. Longer than any lease: what failed
under one is tried again when that has run out, and fails again if nothing has changed.
"""
EXPIRY_SECONDS = 120.0
"""How long after its last failure an outage is over, even if nothing has gone well since: what failed may be settled,
or done by another process. Longer than any retry waits.
"""
_SHORTEST = 0.001
"""Seconds that any outage lasts at least: 0 means that there is none."""


class Outage:
    """Whether something is failing, for how long, and why.

    Args:
        name: What fails, for the log.
        monotonic: Tells the time in seconds.
        recovery: Seconds in place of RECOVERY_SECONDS.
    """

    def __init__(self, name: str, monotonic: Callable[[], float], *, recovery: float = RECOVERY_SECONDS) -> None:
        self.reason: object = ""
        self._name = name
        self._monotonic = monotonic
        self._recovery = recovery
        self._since: float | None = None
        self._well_since: float | None = None
        self._expires_at = 0.0
        self._logged = False

    @property
    def ongoing(self) -> bool:
        """Whether something has failed and is not yet trusted again."""
        return self._since is not None and not self._over()

    def seconds(self) -> float:
        """Returns how long it has lasted; 0 where there is none. Once things go well again, no more time is added."""
        if self._since is None or not self.ongoing:
            return 0.0
        if self._well_since is None:
            return self._monotonic() - self._since
        return max(self._well_since - self._since, _SHORTEST)

    def record_failure(self, reason: object, *, quiet: bool = False, retry_after: float | None = None) -> None:
        """Notes a failure, and logs the first of an outage that is not `quiet`.

        Args:
            reason: What is shown and logged; what `str` makes of it.
            quiet: It is logged by somebody else, or not worth a line.
            retry_after: Seconds in which nothing can be expected to succeed.
        """
        self.end_if_over()
        now = self._monotonic()
        self._since = now if self._since is None else self._since
        self.reason, self._well_since = reason, None
        self._expires_at = now + EXPIRY_SECONDS + (retry_after or 0.0)
        if not quiet and not self._logged:
            self._logged = True
            logger.error("%s: cannot work, and goes on trying: %s", self._name, reason)

    def record_success(self) -> None:
        """Notes a success. One alone ends no outage: the next attempt may fail again."""
        if self._since is not None and self._well_since is None:
            self._well_since = self._monotonic()
        self.end_if_over()

    def end_if_over(self) -> None:
        """Forgets an outage that is over, and logs its end if its beginning was logged."""
        if self._since is None or not self._over():
            return
        if self._logged and self._well_since is not None:
            logger.warning("%s: works again after %.0f s", self._name, self._well_since - self._since)
        self.reason, self._since, self._well_since, self._logged = "", None, None, False

    def _over(self) -> bool:
        now = self._monotonic()
        return now > self._expires_at or (self._well_since is not None and now >= self._well_since + self._recovery)


RECORDING_RECOVERY_SECONDS = 30.0
"""How long recording has to go well before it is trusted again."""
WARNING_SECONDS = 3600.0
"""How long what could not be recorded is worth a warning."""


class RecordingHealth:
    """Counts what could not be recorded. `monotonic` tells seconds, `recovery` is in them."""

    def __init__(self, monotonic: Callable[[], float], *, recovery: float = RECORDING_RECOVERY_SECONDS) -> None:
        self._monotonic = monotonic
        self._outage = Outage("recording", monotonic, recovery=recovery)
        self._failed = 0
        self._failed_at = 0.0

    def record_success(self) -> None:
        """Notes that something was written. That a request was answered proves less: it may record nothing."""
        self._outage.record_success()

    def record_failure(self, error: Exception) -> None:
        """Notes that nothing can be recorded. An error that is not the database's may be about this request alone, and
        is left out.
        """
        if isinstance(error, StoreError) and not isinstance(error, UnreadableRow):
            self._outage.record_failure(error)

    def missed(self, error: Exception) -> None:
        """Notes that something a person asked for was not recorded."""
        now = self._monotonic()
        self._failed = self._failed + 1 if now - self._failed_at < WARNING_SECONDS else 1
        self._failed_at = now
        self.record_failure(error)

    def failing(self) -> bool:
        """Whether nothing can be recorded."""
        return self._outage.ongoing

    def status(self) -> ComponentStatus:
        """Returns how recording goes. It has no time of grace, since whatever anybody asks for fails."""
        return ComponentStatus(
            "recording", self._outage.seconds(), str(self._outage.reason), critical=True, grace_seconds=0.0
        )

    def warning(self) -> str:
        """Returns what was missed lately, for the health; empty where nothing was."""
        ago = self._monotonic() - self._failed_at
        if not self._failed or ago > WARNING_SECONDS:
            return ""
        return (
            f"{self._failed} of Slack's requests could not be recorded when they came, the last one {ago / 60:.0f} "
            "minutes ago. Slack brings replies again by itself; for commands and buttons, people were told."
        )
