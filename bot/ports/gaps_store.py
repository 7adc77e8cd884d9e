"""The store's ports for times in which nobody listened to Slack."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.gaps.gap import Gap, Listening


@dataclass(frozen=True)
class ClaimedGap:
    """A gap to read, and how often that was tried, this time included."""

    gap: Gap
    attempts: int


class Gaps(Protocol):
    """Who listened until when, and which conversations are still to be read because nobody did."""

    async def listens(self, owner: str, now: Listening) -> bool:
        """Notes that a process listens. True if that shows a gap, which is then a row."""

    async def listens_no_more(self, owner: str) -> None:
        """Forgets a process that is about to end. Until when anybody listened stays known."""

    async def claim(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedGap]:
        """Claims gaps to read, and drops those over which another process turned out to have listened."""

    async def keep(self, gap: Gap, owner: str, *, lease: float) -> float | None:
        """Extends a claim, and returns the time. None if it is another process's by now."""

    async def add(self, gaps: Sequence[Gap], *, newest: float) -> None:
        """Adds gaps; one of the same conversation becomes longer."""

    async def spread(self, gap: Gap) -> None:
        """Adds a gap for each job's thread and direct message that it concerns, and for all channels."""

    async def close(self, gap: Gap, owner: str) -> None:
        """Ends a gap that was read, unless it became longer meanwhile."""

    async def postpone(self, gap: Gap, owner: str, *, due_in: float) -> None:
        """Releases a gap that could not be read yet."""

    async def restored(self) -> None:
        """Notes that nobody listened since the backup that the database was restored from."""

    async def is_new_stop(self, thread_id: str, person_id: str) -> bool:
        """Notes somebody's reaction for a stop on a job's card. False if it was noted before, or arrived by itself."""
