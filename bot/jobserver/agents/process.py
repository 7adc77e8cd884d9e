"""An agent's process: started with pipes in a session of its own, and ended with everything it started."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable, Coroutine
from typing import IO, Any

from bot.jobserver import subprocesses
from bot.jobserver.sandbox.interface import SandboxedProgram

LINE_LIMIT = 8_000_000
"""Bytes of the longest message taken; twice as much may wait to be read."""
_EXIT_S = 0.5
"""Until a program whose input has ended is ended, too."""
_TERM_S = 2.0
"""From SIGTERM to SIGKILL."""
_REAP_S = 0.5
_DRAIN_S = 0.5
"""For output that is still on its way when the process has ended."""
Message = dict[str, Any]
_IDS = (int, str, type(None))


class AgentProcess:
    """A running program. `stdin` and `stdout` are its pipes; standard error goes to the sink it was started with."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        stdin: asyncio.StreamWriter,
        stdout: tuple[asyncio.StreamReader, asyncio.ReadTransport],
        closing: contextlib.AsyncExitStack,
    ) -> None:
        self.stdin = stdin
        self.stdout, self._output = stdout
        self._process = process
        self._closing = closing
        self._exit = asyncio.create_task(process.wait(), name="an agent's exit")
        self._exit.add_done_callback(self._end_output)

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

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exited(self) -> asyncio.Task[int]:
        """Done when the program has ended; its result is the exit code, negative for a signal."""
        return self._exit

    async def exit_code_soon(self) -> int:
        """Returns the exit code of a program that has just closed its output, and 0 for one that goes on."""
        if self.stdout.at_eof():
            await asyncio.wait({self._exit}, timeout=_TERM_S)
        return self._exit.result() if self._exit.done() else 0

    async def end(self) -> None:
        """Lets the program end by itself for a moment, then ends what is left of it."""
        self.stdin.close()
        await asyncio.wait({self._exit}, timeout=_EXIT_S)
        await self.kill()

    async def kill(self) -> None:
        """Ends the program at once, and closes its pipes.

        What a sandbox starts ends all that came from it at SIGTERM, and could not any more at SIGKILL.
        """
        if not self._exit.done():
            subprocesses.signal_group(self.pid, signal.SIGTERM)
            await asyncio.wait({self._exit}, timeout=_TERM_S)
        subprocesses.signal_group(self.pid, signal.SIGKILL)
        await asyncio.wait({self._exit}, timeout=_REAP_S)
        await self._closing.aclose()

    def _end_output(self, _: asyncio.Task[int]) -> None:
        # A child that was left behind may hold the pipe open, and reading would never end.
        self._exit.get_loop().call_later(_DRAIN_S, self._output.close)


async def uninterrupted(work: Coroutine[Any, Any, None]) -> None:
    """Does the work to its end, also when this is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


async def _input_pipe(stack: contextlib.AsyncExitStack) -> tuple[IO[bytes], asyncio.StreamWriter]:
    """Returns what a child reads from, and a writer into it."""
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
    """What the SDK's connection reads from and writes to: its `Transport`, for JSON-RPC messages, one a line.

    Lines are bounded: the SDK's own reader takes a line of any length.

    Notifications are handed to `notified` as they are read, in their order, so that a flood of them neither piles up
    nor loses its order; whatever is no message is left out, and counted in `ignored`. `too_long` says that reading
    ended at a line that is longer than the reader's limit.
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
        """Raises ConnectionError where nobody reads requests any more; an answer is dropped then."""
        self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        with contextlib.suppress(*(() if "method" in message else (ConnectionError,))):
            await self._writer.drain()

    async def receive(self) -> Message | None:
        """Returns the next request or response; None at the end."""
        while line := await self._line():
            # Buffered lines are read without waiting: others shall have their turn.
            await asyncio.sleep(0)
            match parsed(line):
                case None:
                    self.ignored += bool(line.strip())
                case {"method": _} as message if "id" not in message:
                    self._notified(message)
                case message:
                    await self._drained()
                    return message
        return None

    async def close(self) -> None:
        self._writer.close()

    async def _drained(self) -> None:
        """Waits for an agent that asks without reading the answers, which would pile up."""
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

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


def parsed(line: bytes) -> Message | None:
    """Returns a line's message, or None for what is none: the SDK's connection breaks at some of that."""
    with contextlib.suppress(ValueError, RecursionError):
        message = json.loads(line)
        if isinstance(message, dict) and _is_sound(message):
            return message
    return None


def _is_sound(message: Message) -> bool:
    has_kind = "method" in message or "id" in message
    error = message.get("error")
    return (
        has_kind
        and isinstance(message.get("id"), _IDS)
        and isinstance(message.get("method", ""), str)
        and (error is None or _is_error(error))
    )


def _is_error(error: object) -> bool:
    return (
        isinstance(error, dict) and isinstance(error.get("code", 0), int) and isinstance(error.get("message", ""), str)
    )
