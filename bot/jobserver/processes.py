"""Child processes: no shell, a group of their own, a time limit, and output of bounded size."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_GRACE_S = 3.0
_DRAIN_S = 1.0
_CHUNK = 65_536


class ProcessTimeoutError(Exception):
    """The process was ended because its time was up."""


class BoundedLog:
    """Bytes appended to a stream up to a limit; what comes after is counted, not kept."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream = stream
        self._left = limit
        self.dropped = 0

    def write(self, data: bytes) -> None:
        kept = data[: self._left]
        self._left -= len(kept)
        self.dropped += len(data) - len(kept)
        if kept:
            self._stream.write(kept)
            self._stream.flush()

    def line(self, text: str) -> None:
        self.write(text.encode(errors="replace") + b"\n")


@dataclass(frozen=True)
class Command:
    """What to run. `time_limit` is in seconds."""

    arguments: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    time_limit: float
    stdin: bytes = b""


async def run(command: Command, *, stdout: BoundedLog, stderr: BoundedLog | None = None) -> int:
    """Run to the end and return the exit code; standard error joins standard output unless it has its own log.

    Whatever the process left behind in its group is ended with it, also when this is cancelled.

    Raises:
        OSError: the program cannot be started.
        ProcessTimeoutError: the time limit passed.
    """
    process = await asyncio.create_subprocess_exec(
        *command.arguments,
        cwd=command.directory,
        env=dict(command.environment),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE if stderr else asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    pipes = asyncio.gather(
        _feed(process.stdin, command.stdin), _drain(process.stdout, stdout), _drain(process.stderr, stderr)
    )
    try:
        async with asyncio.timeout(command.time_limit):
            code = await process.wait()
    except TimeoutError:
        raise ProcessTimeoutError from None
    finally:
        # Shielded: a second cancellation must not leave a group running.
        await asyncio.shield(_end(process, pipes))
    return code


async def _end(process: asyncio.subprocess.Process, pipes: asyncio.Future[tuple[None, None, None]]) -> None:
    if process.returncode is None:
        _signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_S)
    _signal_group(process.pid, signal.SIGKILL)
    await process.wait()
    # A grandchild in a session of its own may hold the pipe open: take what is there and go on.
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(pipes, _DRAIN_S)


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


async def _feed(pipe: asyncio.StreamWriter | None, data: bytes) -> None:
    if pipe is None:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        pipe.write(data)
        await pipe.drain()
    pipe.close()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        await pipe.wait_closed()


async def _drain(pipe: asyncio.StreamReader | None, log: BoundedLog | None) -> None:
    if pipe is None or log is None:
        return
    while data := await pipe.read(_CHUNK):
        log.write(data)
