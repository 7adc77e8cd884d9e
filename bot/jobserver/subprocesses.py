"""Child processes: no shell, a group of their own, a time limit, and output of bounded size."""

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_GRACE_S = 3.0
"""From SIGTERM to SIGKILL."""
_DRAIN_S = 1.0
"""For output that is still on its way when the process has ended."""
_CHUNK = 65_536


class ProcessTimeoutError(Exception):
    """The process was ended because its time was up."""


class BoundedWriter:
    """Writes to a stream up to a limit in bytes; what comes after is counted as `dropped`, not kept."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
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


@dataclass(frozen=True)
class Command:
    """What to run, without a shell. `time_limit` is in seconds."""

    arguments: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    time_limit: float
    stdin: bytes = b""


async def run(command: Command, *, stdout: BoundedWriter, stderr: BoundedWriter | None = None) -> int:
    """Runs to the end and returns the exit code; without a writer of its own, standard error joins standard output.

    Whatever the process left behind in its process group is ended with it, also when this is cancelled.

    Raises:
        OSError: the program cannot be started.
        ProcessTimeoutError: the time limit passed.
    """
    async with contextlib.AsyncExitStack() as stack:
        out = await _pipe_into(stdout, stack)
        err = await _pipe_into(stderr, stack) if stderr else None
        process = await _start(command, stdout=out, stderr=err)
        try:
            async with asyncio.timeout(command.time_limit):
                code = await process.wait()
        except TimeoutError:
            raise ProcessTimeoutError from None
        finally:
            # Shielded: a second cancellation must not leave a group running.
            await asyncio.shield(_end(process))
    return code


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


async def _pipe_into(output: BoundedWriter, stack: contextlib.AsyncExitStack) -> IO[bytes]:
    """Returns the writing end of a pipe into `output`, which is read to its end, or until `stack` has waited for it."""
    read_end, write_end = os.pipe()
    write_stream = stack.enter_context(os.fdopen(write_end, "wb"))
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb")
    )
    task = asyncio.create_task(_copy(reader, output))

    async def finish() -> None:
        # A grandchild in a session of its own may hold the pipe open: take what is there and go on.
        write_stream.close()
        await asyncio.wait({task}, timeout=_DRAIN_S)
        transport.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    stack.push_async_callback(finish)
    return write_stream


async def _copy(reader: asyncio.StreamReader, output: BoundedWriter) -> None:
    while data := await reader.read(_CHUNK):
        output.write(data)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        _signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_S)
    _signal_group(process.pid, signal.SIGKILL)
    await process.wait()


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
