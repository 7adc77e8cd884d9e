"""An agent's process: started with pipes in its own session, and ended with everything it started."""

import asyncio
import contextlib
import functools
import json
import os
from collections.abc import Callable, Coroutine
from typing import IO, Any

from pydantic import BaseModel

from bot.jobserver import subprocesses
from bot.jobserver.sandbox.interface import SandboxedProgram

LINE_LIMIT = 8_000_000
"""Bytes of the longest accepted message; twice as much is buffered."""
_EXIT_S = 0.5
"""Time for a program to exit after the end of its input."""
_TERM_S = 2.0
"""Time between SIGTERM and SIGKILL."""
_DRAIN_S = 0.5
"""Time to read the remaining output after the process has ended."""
Message = dict[str, Any]


class AgentProcess:
    """A running program. `stdin` and `stdout` are its pipes; standard error goes to the callback.

    `exited` is done when the program has exited; its result is the exit code, negative for a signal.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        stdin: asyncio.StreamWriter,
        stdout: tuple[asyncio.StreamReader, asyncio.ReadTransport],
        closing: contextlib.AsyncExitStack,
    ) -> None:
        self.stdin = stdin
        self.stdout, self._output = stdout
        self.pid = process.pid
        self._process = process
        self._closing = closing
        self.exited = asyncio.create_task(process.wait(), name="an agent's exit")
        # A child left behind may hold the pipe open, and reading would never end.
        close_later = functools.partial(self.exited.get_loop().call_later, _DRAIN_S, self._output.close)
        self.exited.add_done_callback(lambda _: close_later())

    @classmethod
    async def start(cls, program: SandboxedProgram, errors: Callable[[bytes], None]) -> "AgentProcess":
        """Starts the program.

        Raises:
            OSError: it cannot be started.
        """
        async with contextlib.AsyncExitStack() as stack:
            child_stdin, stdin = await _input_pipe(stack)
            child_stdout, stdout, output = await subprocesses.output_pipe(stack, LINE_LIMIT)
            child_stderr = await subprocesses.pipe_into(errors, stack)
            with child_stdin, child_stdout, child_stderr:
                process = await asyncio.create_subprocess_exec(
                    *program.arguments,
                    cwd=program.directory,
                    env=dict(program.environment),
                    stdin=child_stdin,
                    stdout=child_stdout,
                    stderr=child_stderr,
                    start_new_session=True,
                )
            return cls(process, stdin, (stdout, output), stack.pop_all())

    async def end(self) -> None:
        """Gives the program a moment to exit, then kills its remaining processes."""
        self.stdin.close()
        await asyncio.wait({self.exited}, timeout=_EXIT_S)
        await self.kill()

    async def kill(self) -> None:
        """Ends the program at once, and closes its pipes.

        SIGTERM comes first: the sandbox's supervisor then ends all descendants, which it cannot do after SIGKILL.
        """
        await subprocesses.end(self._process, _TERM_S)
        await self._closing.aclose()


async def uninterrupted(work: Coroutine[Any, Any, None]) -> None:
    """Runs `work` to its end, even if the caller is cancelled."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


async def _input_pipe(stack: contextlib.AsyncExitStack) -> tuple[IO[bytes], asyncio.StreamWriter]:
    """Returns the child's end of a pipe, and a writer to it."""
    loop = asyncio.get_running_loop()
    read_end, write_end = os.pipe()
    child_end = stack.enter_context(os.fdopen(read_end, "rb"))
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(write_end, "wb")
    )
    stack.callback(_abort, transport)
    return child_end, asyncio.StreamWriter(transport, protocol, None, loop)


def _abort(transport: asyncio.WriteTransport) -> None:
    if not transport.is_closing():
        transport.abort()


class AgentMessages:
    """A `Transport` for the SDK's connection: JSON-RPC messages, one per line.

    Unlike the SDK's own reader, it limits the length of lines. It passes notifications to `notified` as they are read,
    so that they stay in order and do not pile up. Lines that are not messages are counted in `ignored`. `too_long`:
    reading ended at a line longer than the reader's limit.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, notified: Callable[[Message], None]
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._notified = notified
        self.ignored = 0
        self.too_long = False

    async def send(self, message: Message) -> None:
        """Raises ConnectionError if nobody reads requests any more; a response is dropped then."""
        self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        with contextlib.suppress(*(() if "method" in message else (ConnectionError,))):
            await self._writer.drain()

    async def receive(self) -> Message | None:
        """Returns the next request or response; None at the end."""
        while line := await self._line():
            # Buffered lines are read without waiting: let other tasks run.
            await asyncio.sleep(0)
            match parsed(line):
                case None:
                    self.ignored += bool(line.strip())
                case {"method": _} as message if "id" not in message:
                    self._notified(message)
                case message:
                    with contextlib.suppress(ConnectionError):  # unread responses would pile up
                        await self._writer.drain()
                    return message
        return None

    async def close(self) -> None:
        self._writer.close()

    async def _line(self) -> bytes:
        try:
            return await self._reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as end:
            return end.partial
        except asyncio.LimitOverrunError:
            self.too_long = True
        except ConnectionError:
            pass
        return b""


class _Error(BaseModel):
    code: int = 0
    message: str = ""


class _Message(BaseModel):
    """What the SDK's connection takes for granted."""

    id: int | str | None = None
    method: str = ""
    error: _Error | None = None


def parsed(line: bytes) -> Message | None:
    """Returns a line's message, or None if it is not a valid one: some of these break the SDK's connection."""
    with contextlib.suppress(ValueError, RecursionError):
        message: Message = json.loads(line)
        if _Message.model_validate(message, strict=True).model_fields_set & {"id", "method"}:
            return message
    return None
