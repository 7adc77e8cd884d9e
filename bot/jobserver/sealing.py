"""Encrypts files for the database: agents' sessions, and work that was held back, are not for those who can read it."""

import os
from collections.abc import AsyncIterable, AsyncIterator

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from bot.jobserver.errors import JobServerError
from bot.runtime.rotating_secrets import RotatingSecret

_NONCE_BYTES = 12
_TAG_BYTES = 16
OVERHEAD_BYTES = _NONCE_BYTES + _TAG_BYTES


class Sealing:
    """AES-256-GCM by chunk, with the newest key; each chunk is bound to its file, its place, and whether it is last."""

    def __init__(self, keys: RotatingSecret) -> None:
        self._keys = keys

    async def seal(self, chunks: AsyncIterable[bytes], name: str) -> AsyncIterator[bytes]:
        """Yields as many chunks, each OVERHEAD_BYTES larger. `name` is the file's."""
        cipher = AESGCM(bytes.fromhex(self._keys.newest))
        async for place, chunk in _placed(chunks, name):
            nonce = os.urandom(_NONCE_BYTES)
            yield nonce + cipher.encrypt(nonce, chunk, place)

    async def open(self, chunks: AsyncIterable[bytes], name: str) -> AsyncIterator[bytes]:
        """Yields what was sealed.

        Raises:
            JobServerError: it was changed or cut, or its key is neither of the two; what came before is as it was.
        """
        async for place, chunk in _placed(chunks, name):
            yield self._opened(chunk, place)

    def _opened(self, chunk: bytes, place: bytes) -> bytes:
        for key in self._keys.values:
            try:
                return AESGCM(bytes.fromhex(key)).decrypt(chunk[:_NONCE_BYTES], chunk[_NONCE_BYTES:], place)
            except (InvalidTag, ValueError):  # the latter for a nonce that was cut
                continue
        raise JobServerError("it cannot be decrypted: it was changed, or its key is not in SESSION_KEY any more")


async def _placed(chunks: AsyncIterable[bytes], name: str) -> AsyncIterator[tuple[bytes, bytes]]:
    position, waiting = 0, None
    async for chunk in chunks:
        if waiting is not None:
            yield f"{name} {position} more".encode(), waiting
            position += 1
        waiting = chunk
    yield f"{name} {position} last".encode(), waiting or b""
