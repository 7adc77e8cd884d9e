"""A service that answers in capitals."""

import asyncio
import contextlib


async def loudly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers once it has read everything; for the servers of asyncio."""
    with contextlib.suppress(OSError):
        writer.write((await reader.read()).upper())
        await writer.drain()
    writer.close()
