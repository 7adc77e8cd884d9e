"""What the job server counts as it works."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum

from bot.jobserver.egress.proxy import Connected, Egress, EgressRefusals


class RunEnd(StrEnum):
    """How a run of an instruction ended."""

    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    CRASHED = "crashed"
    """By a fault of the job server's own."""


class RunCounts:
    """Takes note of runs. This class counts nothing, which is all there is where no metrics are served."""

    def ended(self, end: RunEnd) -> None:
        """A run has ended."""

    def refused(self, times: int) -> None:
        """A run was refused other hosts, or requests to its model, so many times."""

    def took(self, tokens: int) -> None:
        """A model was sent, or answered, so many tokens."""


@dataclass(frozen=True)
class CountedEgress:
    """Egress that tells, when a run ends, how often it was refused."""

    egress: Egress
    refused: Callable[[int], None]

    @asynccontextmanager
    async def opened(self, refusals: EgressRefusals) -> AsyncIterator[Connected]:
        """See Egress."""
        try:
            async with self.egress.opened(refusals) as connected:
                yield connected
        finally:
            self.refused(refusals.total)
