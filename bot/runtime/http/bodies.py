"""Reads bodies that others send, within bounds."""

from aiohttp import StreamReader


async def read_up_to(limit: int, content: StreamReader) -> bytes:
    """Reads everything, or stops once it has read more than `limit` bytes."""
    found = bytearray()
    async for piece in content.iter_any():
        found += piece
        if len(found) > limit:
            break
    return bytes(found)
