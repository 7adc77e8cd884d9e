"""Programs that a test runs in processes of their own, with all that they print. None outlives its test."""

import asyncio
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE = 300.0


@dataclass
class Program:
    """A running program. Its output is in `printed`."""

    process: Process
    printed: bytes = b""
    _more: asyncio.Condition = field(default_factory=asyncio.Condition)
    _reading: asyncio.Task[None] | None = None

    @property
    def output(self) -> str:
        return self.printed.decode(errors="replace")

    async def prints(self, words: str, *, within: float = PATIENCE) -> None:
        """Waits until it has printed the words."""
        async with asyncio.timeout(within), self._more:
            await self._more.wait_for(lambda: words in self.output or self._has_ended())
        assert words in self.output, self.output

    async def end(self, number: signal.Signals | None = None, *, within: float = PATIENCE) -> int:
        """Waits for its end, after sending it the signal, and returns its exit code."""
        if number is not None and self.process.returncode is None:
            self.process.send_signal(number)
        async with asyncio.timeout(within):
            code = await self.process.wait()
        assert self._reading is not None
        await self._reading
        return code

    def read(self) -> None:
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while more := await self.process.stdout.read(65_536):
            async with self._more:
                self.printed += more
                self._more.notify_all()
        async with self._more:
            self._more.notify_all()

    def _has_ended(self) -> bool:
        return self.process.stdout is not None and self.process.stdout.at_eof()


class Programs:
    """The programs of a test, with only the given environment."""

    def __init__(self) -> None:
        self.started: list[Program] = []

    async def start(self, *command: str, directory: Path, environment: Mapping[str, str], typed: str = "") -> Program:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=directory,
            env=environment,
            stdin=PIPE if typed else DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            start_new_session=True,
        )
        if process.stdin is not None:
            process.stdin.write(typed.encode())
            process.stdin.close()
        program = Program(process)
        program.read()
        self.started.append(program)
        return program

    async def kill(self) -> None:
        """Kills those that are still running."""
        for program in self.started:
            await program.end(signal.SIGKILL)


@asynccontextmanager
async def running_programs() -> AsyncIterator[Programs]:
    programs = Programs()
    try:
        yield programs
    finally:
        await programs.kill()
