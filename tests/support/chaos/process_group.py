"""Bot processes that can be killed, forked from one that has imported everything."""

import asyncio
import contextlib
import json
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.chaos import kill_target
from support.chaos.kill_target import END_AT


@dataclass(eq=False)
class TargetProcess:
    """One process from its start to its end. Times are monotonic seconds."""

    name: str
    pid: int = 0
    began: asyncio.Event = field(default_factory=asyncio.Event)
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

    async def follow(self, process: Process) -> None:
        """Notes what it reports until its end."""
        assert process.stdout is not None
        async for line in process.stdout:
            facts = json.loads(line)
            self.pid = facts["pid"]
            for happened in ("began", "at_work", "at_point", "went_on"):
                if happened in facts:
                    getattr(self, happened).set()
            if "at_point" in facts:
                self.ending = facts
        self.exit_code = await process.wait()
        for event in (self.began, self.at_work, self.ended):
            event.set()


class ProcessGroup:
    """Starts processes. Their logs go to files in `directory`."""

    def __init__(self, command: tuple[str, ...], directory: Path) -> None:
        self._command = command
        self._directory = directory
        self._followed: dict[TargetProcess, asyncio.Task[None]] = {}

    async def start(self, name: str, environment: Mapping[str, str], ending: str = "") -> TargetProcess:
        """Starts a process; `ending` is where it kills or pauses itself, if anywhere."""
        target = TargetProcess(name)
        with (self._directory / f"{name}.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *self._command, env={**environment, END_AT: ending}, stdout=PIPE, stderr=log
            )
        self._followed[target] = asyncio.create_task(target.follow(process))
        await target.began.wait()
        return target

    async def close(self) -> None:
        """Kills all that are still alive."""
        for target in self._followed:
            await target.began.wait()  # its id is 0 before, to which all of our group listens, too
            target.signal(signal.SIGKILL)
        await asyncio.gather(*self._followed.values())


@asynccontextmanager
async def open_process_group(forked: tuple[str, ...], directory: Path) -> AsyncIterator[ProcessGroup]:
    """Opens a group whose processes have nothing of this environment."""
    opened = ProcessGroup((*forked, kill_target.__name__), directory)
    try:
        yield opened
    finally:
        await opened.close()
