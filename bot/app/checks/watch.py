"""Runs the checks while the bot is running: the log, the health and the metrics show what they find."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from bot.app.checks.whole import Check, run_all, without_secrets
from bot.domain.findings import Finding, FindingStatus
from bot.runtime.health import ComponentStatus

logger = logging.getLogger(__name__)

_ONLY_AT_SET_UP = "arrivals."
"""No fault in a running bot: nobody may have asked for anything yet."""


@dataclass(frozen=True)
class WatchTimings:
    """When to run the checks, in seconds.

    Attributes:
        first: From the start to the first run.
        every: Between two runs of all checks.
        slack: Between two runs of those of Slack's tokens and scopes.
        retry: The same while there is an error, or after Slack rejected a token; the check that found the error, too.
    """

    first: float = 60.0
    every: float = 86_400.0
    slack: float = 300.0
    retry: float = 30.0


@dataclass(eq=False)
class SetupWatch:
    """Checks the setup regularly.

    Args:
        checks: All checks; those whose name begins with `slack` run more often.
        secrets: Secrets that no finding may contain; more can be added.
        token_refused: Is set when Slack rejects a token.
        monotonic: Returns the time in seconds.
    """

    checks: Sequence[Check]
    _: KW_ONLY
    secrets: Collection[str] = field(repr=False)
    token_refused: asyncio.Event
    monotonic: Callable[[], float]
    timings: WatchTimings = field(default_factory=WatchTimings)
    _faults: dict[str, tuple[Finding, float]] = field(default_factory=dict, init=False)
    """The faults, with the times at which they were first seen."""

    @property
    def _slack_checks(self) -> list[Check]:
        return [check for check in self.checks if check.name.startswith("slack")]

    async def run(self) -> None:
        """Runs forever."""
        await self._pause(self.timings.first)
        whole_at = self.monotonic()
        while True:
            whole = self.monotonic() >= whole_at
            if whole:
                whole_at = self.monotonic() + self.timings.every
            await self.look(self.checks if whole else [*self._slack_checks, *self._failed_checks()])
            await self._pause(self.timings.retry if self._errors() else self.timings.slack)

    async def look(self, checks: Sequence[Check]) -> None:
        """Runs some checks once."""
        found = without_secrets(await run_all(checks), self.secrets)
        self._note([each for each in found if not each.check.startswith(_ONLY_AT_SET_UP)])

    def status(self) -> ComponentStatus:
        """Returns the errors of the setup that do not resolve themselves."""
        errors = self._errors()
        since = min((at for _, at in errors), default=self.monotonic())
        seconds = max(self.monotonic() - since, 0.001) if errors else 0.0
        return ComponentStatus("set-up", seconds, " ".join(each.words for each, _ in errors), grace_seconds=0.0)

    def counts(self) -> Mapping[FindingStatus, int]:
        """Returns how many errors and warnings there are."""
        return Counter(each.status for each, _ in self._faults.values())

    def warning(self) -> str:
        """Returns the faults that are warnings."""
        return " ".join(each.words for each, _ in self._faults.values() if each.status is FindingStatus.WARNING)

    def _errors(self) -> list[tuple[Finding, float]]:
        return [(each, at) for each, at in self._faults.values() if each.status is FindingStatus.ERROR]

    def _failed_checks(self) -> list[Check]:
        """Returns the checks that found an error, apart from those that run often anyway."""
        found = [f"{error.check}." for error, _ in self._errors()]
        others = (check for check in self.checks if check not in self._slack_checks)
        return [check for check in others if any(name.startswith(f"{check.name}.") for name in found)]

    def _note(self, findings: Sequence[Finding]) -> None:
        for each in findings:
            if each.status is FindingStatus.OK:
                self._clear(each.check, still={other.check for other in findings if other.is_fault})
            elif each.is_fault and not each.passing and each.check not in self._faults:
                self._faults[each.check] = (each, self.monotonic())
                self._log(each)

    def _clear(self, check: str, *, still: set[str]) -> None:
        for name in list(self._faults):
            if name not in still and check in {name, name.rpartition(".")[0]}:
                del self._faults[name]
                logger.warning("%s: is well again", name)

    def _log(self, fault: Finding) -> None:
        level = logging.ERROR if fault.status is FindingStatus.ERROR else logging.WARNING
        logger.log(level, "%s: %s", fault.check, fault.words)

    async def _pause(self, seconds: float) -> None:
        if self._errors():  # a rejected token is already known, and rejected again and again
            await asyncio.sleep(seconds)
        else:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.token_refused.wait()
        self.token_refused.clear()
