"""How recording goes: what people ask for has to be in the database before it is acknowledged."""

from collections.abc import Callable

from bot.errors import StoreError, UnreadableRow
from bot.runtime.health.outages import Outage
from bot.runtime.health.report import ComponentStatus

RECOVERY_SECONDS = 30.0
"""How long recording has to go well before it is trusted again."""
WARNING_SECONDS = 3600.0
"""How long what could not be recorded is worth a warning."""


class RecordingHealth:
    """Counts what could not be recorded. `monotonic` tells seconds, `recovery` is in them."""

    def __init__(self, monotonic: Callable[[], float], *, recovery: float = RECOVERY_SECONDS) -> None:
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
