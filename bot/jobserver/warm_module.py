"""Runs tasks in processes with a time limit, each forked from one that has already imported the module."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bot.jobserver import subprocesses

_FORK_SERVER = "bot.jobserver.fork_server"
_OUTSIDE = Path("/")
_ENVIRONMENT = {"PATH": "", "LC_ALL": "C.UTF-8"}


class _ForkServerGoneError(Exception):
    """The fork server has died, for example for lack of memory."""


@dataclass(frozen=True)
class _ForkServer:
    """A process that has imported the module and forks; it exits when `requests` is closed."""

    process: subprocess.Popen[bytes]
    requests: socket.socket

    @classmethod
    def start(cls, name: str) -> "_ForkServer":
        requests, child_end = socket.socketpair()
        try:
            with child_end:
                process = subprocess.Popen(
                    subprocesses.own_module(_FORK_SERVER, name),
                    cwd=_OUTSIDE,
                    env=_ENVIRONMENT,
                    stdin=child_end.fileno(),
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,
                )
        except BaseException:
            requests.close()
            raise
        return cls(process, requests)

    def ask(self, descriptors: list[int]) -> None:
        try:
            socket.send_fds(self.requests, [b"f"], descriptors)
        except OSError:
            raise _ForkServerGoneError from None

    def close(self) -> None:
        self.requests.close()
        self.process.kill()
        self.process.wait()  # not for long: it was killed


class _Child:
    """A child of the fork server; implements `subprocesses.Process`."""

    def __init__(self, pid: int, ending: asyncio.Task[int]) -> None:
        self.pid = pid
        self._ending = ending

    @property
    def returncode(self) -> int | None:
        return self._ending.result() if self._ending.done() else None

    async def wait(self) -> int:
        return await asyncio.shield(self._ending)


class WarmModule:
    """Runs a module's `main`, which reads its task from standard input. Each task gets a new process.

    Between `keep_warm` and `close`, each process is a fork of a running one that has the imports but no task.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._fork_server: _ForkServer | None = None
        self._is_kept_warm = False

    def keep_warm(self) -> None:
        """Starts the fork server. If that fails, the next task tries again."""
        self._is_kept_warm = True
        with contextlib.suppress(OSError):
            self._start()

    def close(self) -> None:
        """Stops the fork server."""
        self._is_kept_warm = False
        if self._fork_server is not None:
            self._drop(self._fork_server)

    async def run(
        self, task: bytes, *, time_limit: float, stdout: subprocesses.Writer, stderr: subprocesses.Writer | None = None
    ) -> int:
        """Runs a task and returns its exit code; `time_limit` is in seconds.

        Without `stderr`, standard error is dropped.

        Raises:
            OSError: the process cannot be started.
            ProcessTimeoutError: the time limit passed.
        """
        stderr = stderr or subprocesses.FirstBytes(0)
        with contextlib.suppress(_ForkServerGoneError):
            return await self._run(task, time_limit, stdout, stderr)
        try:
            return await self._run(task, time_limit, stdout, stderr)
        except _ForkServerGoneError:
            raise ChildProcessError(0, f"{self._name} cannot be forked") from None

    async def _run(
        self, task: bytes, time_limit: float, stdout: subprocesses.Writer, stderr: subprocesses.Writer
    ) -> int:
        server = self._fork_server if self._is_kept_warm else None
        server = server or self._start()
        try:
            return await _run(server, task, time_limit, stdout, stderr)
        except (OSError, _ForkServerGoneError):
            self._drop(server)
            raise
        finally:
            if not self._is_kept_warm:
                self._drop(server)

    def _start(self) -> _ForkServer:
        self._fork_server = _ForkServer.start(self._name)
        return self._fork_server

    def _drop(self, server: _ForkServer) -> None:
        if self._fork_server is server:
            self._fork_server = None
        server.close()


async def _run(
    server: _ForkServer, task: bytes, time_limit: float, stdout: subprocesses.Writer, stderr: subprocesses.Writer
) -> int:
    async with contextlib.AsyncExitStack() as stack:
        output = await subprocesses.pipe_into(stdout.write, stack)
        errors = await subprocesses.pipe_into(stderr.write, stack)
        read_end, write_end = os.pipe()
        with os.fdopen(read_end, "rb") as stdin, output, errors:
            stream = stack.enter_context(os.fdopen(write_end, "wb", buffering=0))
            child = await _forked(server, [pipe.fileno() for pipe in (stdin, output, errors)], stack)
        writing = asyncio.create_task(asyncio.to_thread(_write_all, stream, task))
        try:
            return await subprocesses.ended(child, time_limit)
        finally:
            await asyncio.shield(writing)  # it ends with the process at the latest


async def _forked(server: _ForkServer, descriptors: list[int], stack: contextlib.AsyncExitStack) -> _Child:
    status, child_end = socket.socketpair()
    with child_end:
        reader, writer = await asyncio.open_connection(sock=status)
        stack.callback(writer.close)
        server.ask([*descriptors, child_end.fileno()])
    if not (pid := await reader.readline()):
        raise _ForkServerGoneError
    return _Child(int(pid), asyncio.create_task(_exit_code(reader)))


async def _exit_code(reader: asyncio.StreamReader) -> int:
    return int(await reader.readline() or -signal.SIGKILL)


def _write_all(stream: IO[bytes], task: bytes) -> None:
    """Blocks until everything was read, or the reader is gone."""
    view = memoryview(task)
    with contextlib.suppress(BrokenPipeError), stream:
        while view:
            view = view[stream.write(view) :]
