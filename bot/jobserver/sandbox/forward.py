"""Opens the doors of a program without network access: local ports that lead to Unix sockets.

It runs as a script inside the sandbox, so only the standard library is available. It executes the program as soon as
the ports listen; the forwarding process stays behind, and ends with the sandbox. A program that kills it only closes
its own doors.
"""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Callable

HOST = "127.0.0.1"
MOST_CONNECTIONS = 128
"""Simultaneous connections per door; more have to wait."""
_CANNOT_BE_STARTED = 127
_CHUNK = 2**16
_PAUSE = 0.01
"""Seconds between attempts to connect to a socket whose queue is full; nothing signals when it has room."""


def main(arguments: list[str]) -> None:
    """Runs `PORT=SOCKET… -- PROGRAM ARGUMENT…`."""
    end = arguments.index("--")
    doors = [argument.split("=", 1) for argument in arguments[:end]]
    listening = [(socket.create_server((HOST, int(port)), backlog=MOST_CONNECTIONS), path) for port, path in doors]
    if os.fork() == 0:
        if os.fork() == 0:  # otherwise it would be the program's child
            _leave_streams()
            asyncio.run(_forward(listening))
        os._exit(0)
    os.wait()
    command = arguments[end + 1 :]
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell is what is wanted
    except OSError as error:
        os.write(2, f"{command[0]} cannot be started: {error.strerror}\n".encode(errors="replace"))
        os._exit(_CANNOT_BE_STARTED)


def _leave_streams() -> None:
    """Closes the program's streams here, so that their readers see the end."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)


async def _forward(listening: list[tuple[socket.socket, str]]) -> None:
    await asyncio.gather(*(_serve(listener, path) for listener, path in listening))


async def _serve(listener: socket.socket, path: str) -> None:
    listener.setblocking(False)
    loop, free = asyncio.get_running_loop(), asyncio.Semaphore(MOST_CONNECTIONS)
    connected: set[asyncio.Task[None]] = set()
    while True:
        await free.acquire()
        connection, _ = await loop.sock_accept(listener)
        task = loop.create_task(_connect(connection, path))
        connected.add(task)
        task.add_done_callback(connected.discard)
        task.add_done_callback(lambda _: free.release())


async def _connect(connection: socket.socket, path: str) -> None:
    with contextlib.suppress(OSError):
        inner = await asyncio.open_connection(sock=connection)
        try:
            outer = await _open(path)
        except OSError:
            inner[1].close()
            raise
        await asyncio.gather(copy(inner[0], outer[1]), copy(outer[0], inner[1]))
        for _, writer in (inner, outer):
            writer.close()


async def _open(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Waits while the socket's queue is full: Linux returns EAGAIN, which asyncio takes for a pending connection."""
    outer = socket.socket(socket.AF_UNIX)
    outer.setblocking(False)
    try:
        while True:
            try:
                outer.connect(path)
            except BlockingIOError:
                await asyncio.sleep(_PAUSE)
            else:
                return await asyncio.open_unix_connection(sock=outer)
    except BaseException:
        outer.close()
        raise


async def copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, touch: Callable[[], object] = lambda: None
) -> None:
    """Copies until the end, and passes the end on; if one side is gone, closes the other. `touch` is told of data."""
    with contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            touch()
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():  # TLS, as used to a proxy, has no half-close
            writer.write_eof()
        return
    writer.close()


if __name__ == "__main__":
    main(sys.argv[1:])
