"""Reads what is typed at this process's terminal."""

import asyncio
import os
import sys


async def typed_line() -> str:
    """Returns the next line without spaces around it; empty for Enter. The event loop reads it, so that waiting can end
    in other ways, too.
    """
    loop, terminal = asyncio.get_running_loop(), sys.stdin.fileno()
    typed: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        loop.remove_reader(terminal)
        typed.set_result(os.read(terminal, 4096))

    loop.add_reader(terminal, read)
    try:
        return (await typed).decode(errors="replace").strip()
    finally:
        loop.remove_reader(terminal)
