"""Child processes: no shell, a group of their own, a time limit, and output of bounded size."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

_GRACE_S = 4.0
"""From SIGTERM to SIGKILL."""
_DRAIN_S = 1.0
"""For output that is still on its way when the process has ended."""
_CHUNK = 65_536


_RUN_MODULE = (
    "import json, runpy, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
Watch = Callable[[int], Awaitable[str]]
"""Given a process id, waits until the process must be ended, and returns why. Is cancelled when the process ends."""


def own_module(name: str, *arguments: str) -> tuple[str, ...]:
    """Returns a command that runs a module of ours, found where this process finds its own: without what the directory
    and the environment of the child could put before it.
    """
    paths = [path for path in sys.path if path]
    return (sys.executable, "-I", "-c", _RUN_MODULE, json.dumps(paths), name, *arguments)


class ProcessTimeoutError(Exception):
    """The process was ended because its time was up."""


class ProcessStoppedError(Exception):
    """The process was ended by its watch, for this reason."""


class Writer(Protocol):
    """Where output goes."""

    def write(self, data: bytes) -> None: ...


class Stream(Protocol):
    """The part of a file that `BoundedWriter` needs."""

    def write(self, data: bytes, /) -> object: ...

    def flush(self) -> object: ...


class FirstBytes:
    """Keeps the beginning of what is written to it, at most so many bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.is_complete = True

    def write(self, data: bytes) -> None:
        room = self._limit - len(self._kept)
        self._kept += data[:room]
        self.is_complete = self.is_complete and len(data) <= room

    def getvalue(self) -> bytes:
        return bytes(self._kept)


class BoundedWriter:
    """Writes to a stream up to a limit in bytes; what comes after is counted as `dropped`, not kept."""

    def __init__(self, stream: Stream, limit: int) -> None:
        self._stream = stream
        self._room = limit
        self.dropped = 0

    def write(self, data: bytes) -> None:
        kept = data[: self._room]
        self._room -= len(kept)
        self.dropped += len(data) - len(kept)
        if kept:
            self._stream.write(kept)
            self._stream.flush()


class LastBytes:
    """Keeps the end of what is written to it, at most so many bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.is_complete = True

    def write(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > self._limit:
            del self._kept[: -self._limit]
            self.is_complete = False

    def getvalue(self) -> bytes:
        return bytes(self._kept)


class Process(Protocol):
    """A process that runs, or has ended. It leads a group."""

    pid: int

    @property
    def returncode(self) -> int | None: ...

    async def wait(self) -> int: ...


@dataclass(frozen=True)
class Command:
    """What to run, without a shell. `time_limit` is in seconds."""

    arguments: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    time_limit: float
    stdin: bytes = b""


async def run(command: Command, *, stdout: Writer, stderr: Writer | None = None, watch: Watch | None = None) -> int:
    """Runs to the end and returns the exit code; without a writer of its own, standard error joins standard output.

    Whatever the process left behind in its process group is ended with it, also when this is cancelled.

    Raises:
        OSError: the program cannot be started.
        ProcessTimeoutError: the time limit passed.
        ProcessStoppedError: the watch had it ended.
    """
    async with contextlib.AsyncExitStack() as stack:
        out = await pipe_into(stdout.write, stack)
        err = await pipe_into(stderr.write, stack) if stderr else None
        process = await _start(command, stdout=out, stderr=err)
        return await ended(process, command.time_limit, watch)


async def ended(process: Process, time_limit: float, watch: Watch | None = None) -> int:
    """Waits for the end of a process, which leads a group of its own; otherwise as `run` does."""
    try:
        async with asyncio.timeout(time_limit):
            return await (_watched(process, watch) if watch else process.wait())
    except TimeoutError:
        raise ProcessTimeoutError from None
    finally:
        # Shielded: a second cancellation must not leave a group running.
        await asyncio.shield(_end(process))


async def _watched(process: Process, watch: Watch) -> int:
    watching = asyncio.ensure_future(watch(process.pid))
    ending = asyncio.create_task(process.wait())
    try:
        await asyncio.wait({watching, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            raise ProcessStoppedError(watching.result())
        return ending.result()
    finally:
        watching.cancel()
        ending.cancel()
        await asyncio.gather(watching, ending, return_exceptions=True)


async def _start(command: Command, *, stdout: IO[bytes], stderr: IO[bytes] | None) -> asyncio.subprocess.Process:
    # No pipes of asyncio's own: with them `wait` also waits for whoever inherited them.
    with tempfile.TemporaryFile() as stdin, stdout, stderr or contextlib.nullcontext():
        stdin.write(command.stdin)
        stdin.seek(0)
        return await asyncio.create_subprocess_exec(
            *command.arguments,
            cwd=command.directory,
            env=dict(command.environment),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr or asyncio.subprocess.STDOUT,
            start_new_session=True,
        )


async def output_pipe(
    stack: contextlib.AsyncExitStack, limit: int = _CHUNK
) -> tuple[IO[bytes], asyncio.StreamReader, asyncio.ReadTransport]:
    """Returns what a child writes to, which is to be closed once it has it, and a reader of that with its transport."""
    read_end, write_end = os.pipe()
    child_end = stack.enter_context(os.fdopen(write_end, "wb"))
    reader = asyncio.StreamReader(limit)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb")
    )
    stack.callback(transport.close)
    return child_end, reader, transport


async def pipe_into(write: Callable[[bytes], object], stack: contextlib.AsyncExitStack) -> IO[bytes]:
    """Returns what a child writes to; `write` gets that until the pipe's end, or until `stack` has waited for it."""
    child_end, reader, _ = await output_pipe(stack)
    task = asyncio.create_task(_copy(reader, write))

    async def finish() -> None:
        # A grandchild in a session of its own may hold the pipe open: take what is there and go on.
        await asyncio.wait({task}, timeout=_DRAIN_S)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    stack.push_async_callback(finish)
    return child_end


async def _copy(reader: asyncio.StreamReader, write: Callable[[bytes], object]) -> None:
    while data := await reader.read(_CHUNK):
        write(data)


async def _end(process: Process) -> None:
    if process.returncode is None:
        signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_S)
    signal_group(process.pid, signal.SIGKILL)
    await process.wait()


def signal_group(group: int, number: signal.Signals) -> None:
    """Sends a signal to all that is left of a process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
