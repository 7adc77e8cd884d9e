"""The processes of a run, seen from the driver: who lives, who was killed or stopped where, and who comes next."""

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.victim import ENDING

VICTIM = Path(__file__).with_name("victim.py")
SOURCES = Path(__file__).parents[2]

_TRANSACTIONS = ("committing", "committed")
_CALLS = ("before", "after")
CALLED = {
    "intake": ("create", "send_message"),
    "watch": ("get",),
    "outbox": ("post_card", "update_card", "post", "find", "mark", "tell", "join"),
}
POINTS = (
    *(f"{loop}.{call}.{moment}" for loop, calls in CALLED.items() for call in calls for moment in _CALLS),
    *(f"{loop}.{kind}.{moment}" for loop in CALLED for kind in ("take", "record") for moment in _TRANSACTIONS),
    *(f"listener.record.{moment}" for moment in _TRANSACTIONS),
)
"""Every point at which a process is killed."""
TO_GO_ON = 30.0
"""Seconds after SIGCONT in which a process on a busy machine is at work again."""
SELDOM = frozenset({"create", "find", "tell", "join"})
"""Calls that a process makes so seldom that it ends at the first of them."""


@dataclass(eq=False)
class Life:
    """One process from its start to its end. Times are monotonic seconds."""

    name: str
    pid: int
    born: float
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    at_point: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has told that it kills or stops itself."""
    went_on: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has told that it goes on after it stopped itself."""
    ending: dict[str, Any] = field(default_factory=dict)
    """What it told then."""
    exit_code: int | None = None

    def signal(self, number: signal.Signals) -> None:
        """Does nothing to one that has ended."""
        if not self.ended.is_set():
            os.kill(self.pid, number)


class Nursery:
    """Starts victims. Their logs go to files in `directory`."""

    def __init__(self, process: asyncio.subprocess.Process, directory: Path) -> None:
        self._process = process
        self._directory = directory
        self._lives: dict[int, Life] = {}
        self._expected: dict[str, asyncio.Future[Life]] = {}
        self._reading = asyncio.create_task(self._read())

    async def bear(self, name: str, environment: Mapping[str, str], ending: str = "") -> Life:
        """Starts a process; `ending` is where it kills or stops itself, if anywhere."""
        expected: asyncio.Future[Life] = asyncio.get_running_loop().create_future()
        self._expected[name] = expected
        order = {
            "name": name,
            "environment": {**environment, ENDING: ending},
            "log": str(self._directory / f"{name}.log"),
        }
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(json.dumps(order).encode() + b"\n")
        await stdin.drain()
        return await expected

    async def close(self) -> None:
        """Kills all that still live."""
        for life in self._lives.values():
            life.signal(signal.SIGKILL)
        stdin = self._process.stdin
        assert stdin is not None
        stdin.close()
        await self._process.wait()
        await self._reading

    async def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        async for line in stdout:
            self._told(json.loads(line))

    def _told(self, facts: dict[str, Any]) -> None:
        pid = facts["pid"]
        if "name" in facts:
            life = self._lives[pid] = Life(facts["name"], pid, facts["at"])
            self._expected.pop(life.name).set_result(life)
        elif "ended" in facts:
            life = self._lives.pop(pid)
            life.exit_code = facts["ended"]
            life.ended.set()
        elif "went_on" in facts:
            self._lives[pid].went_on.set()
        else:
            self._lives[pid].ending = facts
            self._lives[pid].at_point.set()


@asynccontextmanager
async def nursery(directory: Path) -> AsyncIterator[Nursery]:
    """A nursery whose victims know of this process's environment only where Python is, and these sources."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(VICTIM),
        "--nursery",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HOME": str(directory), "PYTHONPATH": str(SOURCES)},
    )
    opened = Nursery(process, directory)
    try:
        yield opened
    finally:
        await opened.close()


def ending_at(how: str, point: str, occurrence: int) -> str:
    """Has a process kill or stop itself at the so manieth passing of a point, or at the first where there are few."""
    _, call, _ = point.split(".")
    return f"{how}:{point}#{1 if call in SELDOM else occurrence}"


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
    """What the process was calling: it may have looked at the lease before, and sent the call after."""


@dataclass
class Crew:
    """The instances of one world. `lives` has the newest process of each."""

    nursery: Nursery
    environment: Mapping[str, str]
    rng: random.Random
    name: str
    lives: dict[str, Life] = field(default_factory=dict)
    kills: list[Kill] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)
    deaths: list[str] = field(default_factory=list)
    """Processes that ended by themselves, which none should."""
    _points: list[str] = field(default_factory=list)
    _born: int = 0

    @property
    def at_points(self) -> int:
        """How many were killed at a named point."""
        return sum(bool(kill.point) for kill in self.kills)

    async def start(self, instance: str, ending: str = "") -> Life:
        """Starts an instance (again)."""
        self._born += 1
        life = await self.nursery.bear(f"{self.name}-{instance}-{self._born}", self.environment, ending)
        self.lives[instance] = life
        return life

    async def haunt(self, instance: str, until: asyncio.Event, *, longest: float = 3.0) -> None:
        """Kills and restarts an instance till `until`, then leaves it alive. About two kills of three come at a named
        point; a process that does not get there within `longest` seconds is killed all the same.
        """
        while not until.is_set():
            named = self.rng.random() < 0.65
            ending = ending_at("kill", self._next_point(), self.rng.choice((1, 1, 2))) if named else ""
            life = await self.start(instance, ending)
            await self.kill(life, longest if named else self.rng.uniform(0.3, longest))
            await asyncio.sleep(self.rng.uniform(0.0, 0.3))
        await self.start(instance)

    async def pause(self, life: Life, seconds: float) -> None:
        """Lets a process that stops itself go on after so long; it is a pause only if it lived to see the end."""
        began = time.monotonic()
        await asyncio.sleep(seconds)
        if not life.ended.is_set():
            life.signal(signal.SIGCONT)
            await asyncio.wait_for(life.went_on.wait(), TO_GO_ON)
            told = life.ending
            ended = time.monotonic()
            self.pauses.append(Pause(began, ended, life.name, told["at_point"], tuple(told["under_way"])))

    def _next_point(self) -> str:
        """Each point comes up before any comes up again."""
        if not self._points:
            self._points = self.rng.sample(POINTS, len(POINTS))
        return self._points.pop()

    async def kill(self, life: Life, within: float = 0.0) -> None:
        """Waits so many seconds for a process to kill itself, then does it."""
        facts: dict[str, Any] = {}
        try:
            await asyncio.wait_for(life.ended.wait(), within)
            facts = life.ending
        except TimeoutError:  # what it told, if anything, is where it stopped itself before
            life.signal(signal.SIGKILL)
            await life.ended.wait()
        if life.exit_code != -signal.SIGKILL:
            self.deaths.append(f"{life.name} ended by itself with {life.exit_code}")
            return
        at = facts.get("at", time.monotonic())
        self.kills.append(Kill(at, life.name, life.pid, facts.get("at_point", "")))
