"""The store's ports for the operator: when each kind of event last happened, and faults of the set-up."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.findings import Finding
from bot.domain.last_times import LastTime


class LastTimes(Protocol):
    """When each kind of event last happened."""

    async def note(self, kinds: Collection[LastTime]) -> None:
        """Records that these happened now."""


@dataclass(frozen=True)
class ClaimedFault:
    """A fault to be reported. `found_at` is when it was first seen; `attempts` includes this one."""

    key: str
    words: str
    found_at: float
    attempts: int


class Faults(Protocol):
    """Faults of the set-up that the checks found, each by the name of its check.

    A fault is reported once, and again if it comes back on another day after it was fixed.
    """

    async def record(self, findings: Sequence[Finding], *, tell: bool) -> None:
        """Records the findings of one run. A finding without a fault clears the faults of its name, and of names with
        one more part. With `tell`, a new fault is due to be reported. It is false in the first run, whose faults are
        known to the person who set Pagehand up.
        """

    async def claim(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedFault]:
        """Claims faults that are due to be reported."""

    async def settled(self, key: str, owner: str) -> None:
        """Records that a fault that the owner holds is reported."""

    async def postpone(self, key: str, owner: str, *, due_in: float) -> None:
        """Makes it due again in this many seconds."""
