"""Unpacks files for the scan: zip (also docx, epub, jar), tar, gzip, bzip2 and xz, even nested.

Works in memory and within limits, since a few bytes can expand to gigabytes.
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
"""The total size of one file's contents, over all layers."""
MOST_ENTRIES = 10_000
MOST_LAYERS = 4
_XZ_MEMORY = 128_000_000
_UNREADABLE = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error, OSError, EOFError, ValueError,
    RuntimeError, OverflowError, LookupError,
)  # fmt: skip
"""Raised for damaged or encrypted archives, and for compression methods that Python does not support."""
_TAR_MAGIC = slice(257, 262)
_ZIP_END = b"PK\5\6"


class TooMuchPackedError(Exception):
    """A file contains more than the limits allow to unpack."""


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
    """Yields the names and contents of an archive's entries, recursively; nothing for other files.

    Skips what cannot be read.

    Raises:
        TooMuchPackedError: the contents exceed the limits.
    """
    return _Unpacking().layer(data, MOST_LAYERS)


class _Unpacking:
    """Unpacks one file and keeps track of its limits."""

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
        """Concatenated streams form one content."""
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
