"""Bot processes that can be killed, forked from one that has imported everything."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.chaos.kill_target import END_AT

KILL_TARGET = Path(__file__).with_name("kill_target.py")
SOURCES = Path(__file__).parents[3]


@dataclass(eq=False)
class TargetProcess:
    """One process from its start to its end. Times are monotonic seconds."""

    name: str
    pid: int
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    at_work: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has passed its first point: until then a busy machine may only be starting it."""
    at_point: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has reported that it kills or pauses itself."""
    went_on: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has reported that it continues after a pause."""
    ending: dict[str, Any] = field(default_factory=dict)
    """What it reported then."""
    exit_code: int | None = None

    def signal(self, number: signal.Signals) -> None:
        """Does nothing to a process that has ended, even if nobody was told yet."""
        if not self.ended.is_set():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class ProcessGroup:
    """Starts processes. Their logs go to files in `directory`."""

    def __init__(self, fork_server: asyncio.subprocess.Process, directory: Path) -> None:
        self._fork_server = fork_server
        self._directory = directory
        self._targets: dict[int, TargetProcess] = {}
        self._expected: dict[str, asyncio.Future[TargetProcess]] = {}
        self._reading = asyncio.create_task(self._read())

    async def start(self, name: str, environment: Mapping[str, str], ending: str = "") -> TargetProcess:
        """Starts a process; `ending` is where it kills or pauses itself, if anywhere."""
        expected: asyncio.Future[TargetProcess] = asyncio.get_running_loop().create_future()
        self._expected[name] = expected
        order = {
            "name": name,
            "environment": {**environment, END_AT: ending},
            "log": str(self._directory / f"{name}.log"),
        }
        stdin = self._fork_server.stdin
        assert stdin is not None
        stdin.write(json.dumps(order).encode() + b"\n")
        await stdin.drain()
        return await expected

    async def close(self) -> None:
        """Kills all that are still alive."""
        for target in self._targets.values():
            target.signal(signal.SIGKILL)
        stdin = self._fork_server.stdin
        assert stdin is not None
        stdin.close()
        await self._fork_server.wait()
        await self._reading

    async def _read(self) -> None:
        stdout = self._fork_server.stdout
        assert stdout is not None
        async for line in stdout:
            self._told(json.loads(line))

    def _told(self, facts: dict[str, Any]) -> None:
        pid = facts["pid"]
        if "name" in facts:
            target = self._targets[pid] = TargetProcess(facts["name"], pid)
            self._expected.pop(target.name).set_result(target)
        elif "ended" in facts:
            target = self._targets.pop(pid)
            target.exit_code = facts["ended"]
            target.at_work.set()
            target.ended.set()
        elif "at_work" in facts:
            self._targets[pid].at_work.set()
        elif "went_on" in facts:
            self._targets[pid].went_on.set()
        else:
            self._targets[pid].ending = facts
            self._targets[pid].at_point.set()


@asynccontextmanager
async def open_process_group(directory: Path) -> AsyncIterator[ProcessGroup]:
    """Opens a group whose processes inherit from this environment only the paths of Python and these sources."""
    fork_server = await asyncio.create_subprocess_exec(
        sys.executable,
        str(KILL_TARGET),
        "--fork-server",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HOME": str(directory), "PYTHONPATH": str(SOURCES)},
    )
    opened = ProcessGroup(fork_server, directory)
    try:
        yield opened
    finally:
        await opened.close()
