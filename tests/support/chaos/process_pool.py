"""The instances of the bot in one world: which are alive, which were killed or paused where, and which come next."""

import asyncio
import random
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from support.chaos.kill_points import POINTS, ending_at
from support.chaos.process_group import ProcessGroup, TargetProcess

TO_GO_ON = 30.0
"""Seconds after SIGCONT within which a process on a busy machine works again."""
_GATHERS = 2.0
"""Seconds for which people hold back what they write in a downtime."""


@dataclass(frozen=True)
class Kill:
    """`point` is empty for a random moment."""

    at: float
    name: str
    pid: int
    point: str


@dataclass(frozen=True)
class Pause:
    """From SIGSTOP to SIGCONT."""

    began: float
    ended: float
    name: str
    point: str = ""
    under_way: tuple[str, ...] = ()
    """The call in progress: it may have checked the lease before and sent the call after."""


@dataclass
class ProcessPool:
    """The instances of one world. `targets` has the newest process of each."""

    process_group: ProcessGroup
    environment: Mapping[str, str]
    rng: random.Random
    name: str
    targets: dict[str, TargetProcess] = field(default_factory=dict)
    kills: list[Kill] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)
    deaths: list[str] = field(default_factory=list)
    """Processes that ended by themselves, which must not happen."""
    downtimes: int = 0
    """How often no process was alive for a time."""
    calm: asyncio.Event = field(default_factory=asyncio.Event)
    """Cleared shortly before a downtime: what people write then, they write in it."""
    _points: list[str] = field(default_factory=list)
    _started: int = 0
    _may_start: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.calm.set()

    @property
    def at_points(self) -> int:
        """How many were killed at a named point."""
        return sum(bool(kill.point) for kill in self.kills)

    async def start(self, instance: str, ending: str = "") -> TargetProcess:
        """Starts an instance (again)."""
        async with self._may_start:
            self._started += 1
            name = f"{self.name}-{instance}-{self._started}"
            target = self.targets[instance] = await self.process_group.start(name, self.environment, ending)
        return target

    async def downtime(self, seconds: float, over: asyncio.Event) -> None:
        """Kills all processes, and lets none start for a time in which people act; once it is `over`, none: those that
        were started to stay alive may already run.
        """
        self.calm.clear()
        await asyncio.sleep(_GATHERS)
        async with self._may_start:
            if over.is_set():
                self.calm.set()
                return
            await asyncio.gather(*(self.kill(target) for target in self.targets.values() if not target.ended.is_set()))
            self.downtimes += 1
            self.calm.set()
            await asyncio.sleep(seconds)

    async def kill_repeatedly(self, instance: str, until: asyncio.Event, *, longest: float = 3.0) -> None:
        """Kills and restarts an instance until `until`, then leaves it alive. About two of three kills are at a named
        point; a process that does not get there within twice `longest` seconds of its first work is killed anyway.
        """
        while not until.is_set():
            named = self.rng.random() < 0.65
            ending = ending_at("kill", self._next_point(), self.rng.choice((1, 1, 2))) if named else ""
            target = await self.start(instance, ending)
            if named:
                await asyncio.wait_for(target.at_work.wait(), TO_GO_ON)
            await self.kill(target, 2 * longest if named else self.rng.uniform(0.3, longest))
            await asyncio.sleep(self.rng.uniform(0.0, 0.3))
        await self.start(instance)

    async def pause(self, target: TargetProcess, seconds: float) -> None:
        """Continues a process that paused itself after this time. It counts as a pause only
        if the process survived it.
        """
        began = time.monotonic()
        await asyncio.sleep(seconds)
        if not target.ended.is_set():
            target.signal(signal.SIGCONT)
            await asyncio.wait_for(target.went_on.wait(), TO_GO_ON)
            told = target.ending
            ended = time.monotonic()
            self.pauses.append(Pause(began, ended, target.name, told["at_point"], tuple(told["under_way"])))

    def _next_point(self) -> str:
        """Returns each point once before any is repeated."""
        if not self._points:
            self._points = self.rng.sample(POINTS, len(POINTS))
        return self._points.pop()

    async def kill(self, target: TargetProcess, within: float = 0.0) -> None:
        """Waits up to these seconds for a process to kill itself, then kills it."""
        facts: dict[str, Any] = {}
        try:
            await asyncio.wait_for(target.ended.wait(), within)
            facts = target.ending
        except TimeoutError:  # if it reported anything, it is where it paused itself before
            target.signal(signal.SIGKILL)
            await target.ended.wait()
        if target.name in {kill.name for kill in self.kills}:
            return  # by somebody else at the same time
        if target.exit_code != -signal.SIGKILL:
            self.deaths.append(f"{target.name} ended by itself with {target.exit_code}")
            return
        at = facts.get("at", time.monotonic())
        self.kills.append(Kill(at, target.name, target.pid, facts.get("at_point", "")))
