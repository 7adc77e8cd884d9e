"""Reads bodies that others send, within bounds."""

from aiohttp import StreamReader


async def read_up_to(limit: int, content: StreamReader) -> bytes:
    """Reads everything, or `limit` bytes and one more."""
    found = bytearray()
    while len(found) <= limit and (piece := await content.read(limit + 1 - len(found))):
        found += piece
    return bytes(found)
