"""Unpacks files for the scan: zip (also docx, epub, jar), tar, gzip, bzip2 and xz, also nested.

In memory, and bounded: a few bytes can become gigabytes.
"""

import bz2
import contextlib
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

MOST_BYTES = 32_000_000
"""Of all that one file holds, each layer counted."""
MOST_ENTRIES = 10_000
MOST_LAYERS = 4
_XZ_MEMORY = 128_000_000
_UNREADABLE = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error, OSError, EOFError, ValueError,
    RuntimeError, OverflowError, LookupError,
)  # fmt: skip
"""Damaged, enciphered, or packed in a way that Python does not know."""
_TAR_MAGIC = slice(257, 262)
_ZIP_END = b"PK\5\6"


class TooMuchPackedError(Exception):
    """A file holds more than is unpacked."""


class _Decompressor(Protocol):
    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, _length: int, /) -> bytes: ...


_COMPRESSIONS: dict[bytes, Callable[[], _Decompressor]] = {
    b"\x1f\x8b\x08": lambda: zlib.decompressobj(wbits=31),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\0": lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY),
}


def unpacked(data: bytes) -> Iterator[bytes]:
    """Yields each name and each content that a file holds, and what these hold; nothing of a file that packs nothing.

    What cannot be read is left out. It raises TooMuchPackedError where there is more than is looked at.
    """
    return _Unpacking().layer(data, MOST_LAYERS)


class _Unpacking:
    """One file's, with what is left of its bounds."""

    def __init__(self) -> None:
        self._bytes = MOST_BYTES
        self._entries = MOST_ENTRIES

    def layer(self, data: bytes, layers: int) -> Iterator[bytes]:
        for content in self._entries_of(data):
            if not layers:
                raise TooMuchPackedError
            yield content
            yield from self.layer(content, layers - 1)

    def _entries_of(self, data: bytes) -> Iterator[bytes]:
        with contextlib.suppress(*_UNREADABLE):
            for magic, decompressor in _COMPRESSIONS.items():
                if data.startswith(magic):
                    yield self._decompressed(data, magic, decompressor)
            if data[_TAR_MAGIC] == b"ustar":
                yield from self._of_tar(data)
            if _ZIP_END in data:
                yield from self._of_zip(data)

    def _decompressed(self, data: bytes, magic: bytes, decompressor: Callable[[], _Decompressor]) -> bytes:
        """Streams can follow each other, and are one content."""
        whole = bytearray()
        with contextlib.suppress(*_UNREADABLE):
            while data.startswith(magic):
                stream = decompressor()
                whole += self._taken(stream.decompress(data, self._bytes + 1))
                data = stream.unused_data
        return bytes(whole)

    def _of_tar(self, data: bytes) -> Iterator[bytes]:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for entry in archive:
                yield self._taken(f"{entry.name}\n{entry.linkname}".encode(errors="replace"))
                content = archive.extractfile(entry) if entry.isreg() else None
                if content:
                    yield self._taken(content.read(self._bytes + 1))

    def _of_zip(self, data: bytes) -> Iterator[bytes]:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.infolist():
                yield self._taken(entry.filename.encode(errors="replace") + b"\n" + entry.comment)
                with contextlib.suppress(*_UNREADABLE), archive.open(entry) as content:
                    yield self._taken(content.read(self._bytes + 1))

    def _taken(self, content: bytes) -> bytes:
        self._bytes -= len(content)
        self._entries -= 1
        if self._bytes < 0 or self._entries < 0:
            raise TooMuchPackedError
        return content
