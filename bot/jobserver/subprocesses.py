"""Child processes: no shell, their own process group, a time limit, and bounded output."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from bot.runtime.tasks import watched

_GRACE_S = 4.0
"""Time between SIGTERM and SIGKILL."""
_REAP_S = 5.0
"""Time after SIGKILL: the kernel keeps a process whose file system is away, and that is not waited for."""
_DRAIN_S = 1.0
"""Time to read the remaining output after the process has ended."""
_CHUNK = 65_536
_RUN_MODULE = (
    "import importlib, json, sys; sys.path[:] = json.loads(sys.argv[1]); importlib.import_module(sys.argv[2]).main()"
)
_OWN_ENVIRONMENT = {"PATH": "", "LC_ALL": "C.UTF-8"}
Write = Callable[[bytes], object]
"""Takes output."""
Watch = Callable[[int], Coroutine[Any, Any, NoReturn]]
"""Given a process id, waits until the process must be ended, and raises the reason. Cancelled when it ends."""


class ProcessTimeoutError(Exception):
    """The process was ended at its time limit."""


class _KeptBytes:
    """Keeps at most `limit` bytes; `is_complete` tells whether that was everything."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.is_complete = True

    def getvalue(self) -> bytes:
        return bytes(self._kept)


class FirstBytes(_KeptBytes):
    """Keeps the beginning of what is written to it."""

    def write(self, data: bytes) -> None:
        room = self._limit - len(self._kept)
        self._kept += data[:room]
        self.is_complete = self.is_complete and len(data) <= room


class LastBytes(_KeptBytes):
    """Keeps the end of what is written to it."""

    def write(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > self._limit:
            del self._kept[: -self._limit]
            self.is_complete = False


@dataclass(frozen=True)
class Command:
    """What to run, without a shell. `time_limit` is in seconds; `inherited` are descriptors that the process gets."""

    arguments: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    time_limit: float
    stdin: bytes = b""
    inherited: Sequence[int] = ()


def own_module(name: str, task: bytes, time_limit: float) -> Command:
    """Returns a command that runs a module's `main`, which reads its task from standard input, with nothing of this
    process's environment but its module path.
    """
    paths = json.dumps([path for path in sys.path if path])
    arguments = (sys.executable, "-I", "-c", _RUN_MODULE, paths, name)
    return Command(arguments, Path("/"), _OWN_ENVIRONMENT, time_limit, task)


async def run(command: Command, *, stdout: Write, stderr: Write | None = None, watch: Watch | None = None) -> int:
    """Runs a command and returns its exit code; without `stderr`, standard error joins standard output.

    The rest of the process group is ended with the process, also if this call is cancelled or the watch raises.

    Raises:
        OSError: the program cannot be started.
        ProcessTimeoutError: the time limit passed.
    """
    async with contextlib.AsyncExitStack() as stack:
        out = await pipe_into(stdout, stack)
        err = await pipe_into(stderr, stack) if stderr else None
        process = await _start(command, stdout=out, stderr=err)
        try:
            async with asyncio.timeout(command.time_limit):
                return await (watched(process.wait(), watch(process.pid)) if watch else process.wait())
        except TimeoutError:
            raise ProcessTimeoutError from None
        finally:
            # Shielded: a second cancellation must not leave a group running.
            await asyncio.shield(end(process))


async def _start(command: Command, *, stdout: IO[bytes], stderr: IO[bytes] | None) -> asyncio.subprocess.Process:
    # No asyncio pipes: with them, `wait` would also wait for processes that inherited them.
    no_stdin = contextlib.nullcontext(asyncio.subprocess.DEVNULL)
    with in_memory(command.stdin) if command.stdin else no_stdin as stdin, stdout, stderr or contextlib.nullcontext():
        return await asyncio.create_subprocess_exec(
            *command.arguments,
            cwd=command.directory,
            env=dict(command.environment),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr or asyncio.subprocess.STDOUT,
            start_new_session=True,
            pass_fds=command.inherited,
        )


@contextlib.contextmanager
def in_memory(data: bytes) -> Iterator[IO[bytes]]:
    """Provides a file for a child, in memory where that is possible: it may contain secrets."""
    with os.fdopen(os.memfd_create("input"), "w+b") if sys.platform == "linux" else tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file


async def output_pipe(
    stack: contextlib.AsyncExitStack, limit: int = _CHUNK
) -> tuple[IO[bytes], asyncio.StreamReader, asyncio.ReadTransport]:
    """Returns the child's end of a pipe, to be closed once the child has it, and a reader with its transport."""
    read_end, write_end = os.pipe()
    child_end = stack.enter_context(os.fdopen(write_end, "wb"))
    reader = asyncio.StreamReader(limit)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb")
    )
    stack.callback(transport.close)
    return child_end, reader, transport


async def pipe_into(write: Write, stack: contextlib.AsyncExitStack) -> IO[bytes]:
    """Returns the child's end of a pipe whose contents go to `write`, until its end or until `stack` is closed."""
    child_end, reader, _ = await output_pipe(stack)
    task = asyncio.create_task(_copy(reader, write))

    async def finish() -> None:
        # A grandchild in another session may hold the pipe open: read what is available and continue.
        await asyncio.wait({task}, timeout=_DRAIN_S)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    stack.push_async_callback(finish)
    return child_end


async def _copy(reader: asyncio.StreamReader, write: Write) -> None:
    while data := await reader.read(_CHUNK):
        write(data)


async def end(process: asyncio.subprocess.Process, grace: float = _GRACE_S) -> None:
    """Ends a process and what is left of its group: with SIGTERM, `grace` seconds later with SIGKILL."""
    if process.returncode is None:
        _signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), grace)
    _signal_group(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _REAP_S)


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
