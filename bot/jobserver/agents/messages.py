"""JSON-RPC messages, one a line, with bounds: the SDK's own reader takes a line of any length."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]
_IDS = (int, str, type(None))


class AgentMessages:
    """What the SDK's connection reads from and writes to: its `Transport`.

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
        """Raises ConnectionError where nobody reads a request any more; an answer is then of no use to anybody."""
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
