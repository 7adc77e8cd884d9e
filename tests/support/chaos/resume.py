"""How long it took after a kill until work resumed, and until others had taken over what the killed process held."""

import asyncio
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from support.chaos.process_world import ProcessWorld
from support.servers.fake_job_api import Operation

_HELD = " UNION ALL ".join(
    f"SELECT '{table}', thread_id, {key}, claimed_by, claimed_until FROM {table} WHERE claimed_by IS NOT NULL"  # noqa: S608 - our own names
    for table, key in (("requests", "id"), ("notices", "CAST(id AS TEXT)"), ("polls", "thread_id"))
)
_LOOK_EVERY = 0.2
_SAYING = frozenset(
    {
        "chat.postMessage",
        "chat.update",
        "chat.postEphemeral",
        "reactions.add",
        "reactions.remove",
        "conversations.replies",
        "conversations.history",
    }
)


@dataclass
class Claims:
    """When each claim was last seen in the database, and last seen behind another, in monotonic seconds.

    A thread's work is done one by one: while one item is claimed the rest waits, including claims of the dead.
    """

    world: ProcessWorld
    _last_seen: dict[tuple[Any, ...], float] = field(default_factory=dict)
    _last_behind: dict[tuple[Any, ...], float] = field(default_factory=dict)

    async def watch(self) -> None:
        """Observes the database forever."""
        while True:
            claims = [tuple(row) for row in await self.world.rows(_HELD)]
            now, at_a_thread = time.monotonic(), Counter(claim[:2] for claim in claims)
            self._last_seen.update((claim, now) for claim in claims)
            self._last_behind.update((claim, now) for claim in claims if at_a_thread[claim[:2]] > 1)
            await asyncio.sleep(_LOOK_EVERY)

    def outlasted(self, pid: int, death: float) -> list[float]:
        """Returns for how many seconds each claim of a process blocked others after its death."""
        mine = {claim: seen for claim, seen in self._last_seen.items() if f"-{pid}-" in claim[3] and seen > death}
        return [seen - max(self._last_behind.get(claim, death), death) for claim, seen in mine.items()]


@dataclass(frozen=True)
class Resume:
    """Seconds from a kill to the first activity of its target or any process, and to the
    takeover of each item it held.
    """

    anywhere: tuple[float, ...]
    taken_over: tuple[float, ...]


def longest(seconds: Sequence[float]) -> float:
    """0 if there are none."""
    return max(seconds, default=0.0)


def typical(seconds: Sequence[float]) -> float:
    """The median; 0 if there are none."""
    return median(seconds) if seconds else 0.0


def resumed(world: ProcessWorld, claims: Claims) -> Resume:
    """Measures this for every kill that left work to do."""
    times, kills = sorted(_signs(world)), world.process_pool.kills
    anywhere = (_next(times, kill.at) for kill in kills)
    taken_over = (seconds for kill in kills for seconds in claims.outlasted(kill.pid, kill.at))
    return Resume(tuple(seconds for seconds in anywhere if seconds is not None), tuple(taken_over))


def _next(times: Sequence[float], after: float) -> float | None:
    place = bisect_right(times, after)
    return times[place] - after if place < len(times) else None


def doings(world: ProcessWorld) -> int:
    """Returns how many calls were made to the job API, except polls, and how many posts to Slack."""
    asked = sum(attempt.operation is not Operation.GET for attempt in world.fake_job_api.attempts)
    return asked + sum(call.method in _SAYING for call in world.workspace.web_api.calls)


def _signs(world: ProcessWorld) -> Iterator[float]:
    """Returns when something was done, in monotonic seconds."""
    yield from (attempt.at for attempt in world.fake_job_api.attempts)
    offset = time.monotonic() - time.time()
    yield from (call.at + offset for call in world.workspace.web_api.calls if call.method in _SAYING)
