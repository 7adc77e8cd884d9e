"""Files that clients upload for a prompt: each content is kept once, by its SHA-256."""

import asyncio
import contextlib
import hashlib
import os
import tempfile
from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

import aiosqlite

from bot.jobserver.errors import FileMismatchError, FileTooLargeError, UploadSpaceError
from bot.jobserver.store.database import Database
from bot.jobserver.store.records import as_text

KEPT_UNUSED = timedelta(days=10)
"""For how long a file is kept that no instruction names: a client may have to wait for somebody's answer first, and for
this server to be back.
"""
_BATCH_SIZE = 50
_ARRIVING = "arriving-"
_MEGABYTE = 1_000_000


def uploads_folder(data: Path) -> Path:
    """Returns where they lie in the server's data directory."""
    return data / "uploads"


@dataclass(frozen=True)
class UploadLimits:
    """In bytes: one file, and all that are kept."""

    file: int
    space: int

    def too_large(self) -> FileTooLargeError:
        return FileTooLargeError(f"the file is larger than {self.file / _MEGABYTE:g} MB")

    def no_space(self) -> UploadSpaceError:
        return UploadSpaceError(
            f"this job server keeps {self.space / _MEGABYTE:g} MB of files, and has no room for this one"
        )


class UploadStore:
    """The files lie in `folder`, each under its id; a row of the database for each makes it count."""

    def __init__(self, database: Database, folder: Path, limits: UploadLimits, *, now: Callable[[], datetime]) -> None:
        self._database = database
        self._folder = folder
        self._now = now
        self.limits = limits
        # A file that is being deleted may be uploaded again at the same moment.
        self._placing = asyncio.Lock()

    async def prepare(self) -> None:
        """Makes the folder, and removes what a killed server left there without a row."""
        await asyncio.to_thread(self._folder.mkdir, mode=0o700, exist_ok=True)
        async with self._database.transaction() as connection:
            rows = await connection.execute_fetchall("SELECT id FROM uploads")
        await asyncio.to_thread(self._remove_all_but, {row["id"] for row in rows})

    async def add(self, file_id: str, mimetype: str, chunks: AsyncIterable[bytes]) -> None:
        """Keeps the bytes of a file. The same content twice is one file, which is kept as long as from now.

        Raises:
            RequestRejectedError: they have another digest, or are too many.
        """
        with await asyncio.to_thread(self._arriving) as stream:
            path = Path(stream.name)
            try:
                size = await self._receive(file_id, chunks, stream)
                await asyncio.to_thread(_flush, stream)
                async with self._placing, self._database.transaction() as connection:
                    await self._check_space(connection, file_id, size)
                    await asyncio.to_thread(_place, path, self._folder / file_id)
                    await _record(connection, file_id, size, mimetype, as_text(self._now()))
            finally:
                await asyncio.shield(asyncio.to_thread(path.unlink, missing_ok=True))

    async def delete_unused(self) -> int:
        """Deletes files that no instruction names and nobody uploaded lately; returns how many."""
        async with self._placing:
            async with self._database.transaction() as connection:
                ids = await _delete_rows(connection, as_text(self._now() - KEPT_UNUSED))
            # The rows first: a file without one is removed at the next start, a row without a file would be a promise.
            await asyncio.to_thread(self._remove, ids)
        return len(ids)

    async def _receive(self, file_id: str, chunks: AsyncIterable[bytes], stream: IO[bytes]) -> int:
        digest, size = hashlib.sha256(), 0
        async for chunk in chunks:
            size += len(chunk)
            if size > self.limits.file:
                raise self.limits.too_large()
            digest.update(chunk)
            await asyncio.to_thread(stream.write, chunk)
        if digest.hexdigest() != file_id:
            raise FileMismatchError("these bytes have another SHA-256 than the address says")
        return size

    async def _check_space(self, connection: aiosqlite.Connection, file_id: str, size: int) -> None:
        cursor = await connection.execute("SELECT coalesce(sum(size), 0) FROM uploads WHERE id <> ?", (file_id,))
        row = await cursor.fetchone()
        if row is None or row[0] + size > self.limits.space:
            raise self.limits.no_space()

    def _arriving(self) -> IO[bytes]:
        descriptor, name = tempfile.mkstemp(prefix=_ARRIVING, dir=self._folder)
        os.close(descriptor)
        return Path(name).open("wb")

    def _remove_all_but(self, known: set[str]) -> None:
        self._remove([path.name for path in self._folder.iterdir() if path.name not in known])

    def _remove(self, names: list[str]) -> None:
        for name in names:
            with contextlib.suppress(OSError):
                (self._folder / name).unlink()


def _flush(stream: IO[bytes]) -> None:
    """The row, which is written after this, must not outlive the bytes."""
    stream.flush()
    os.fsync(stream.fileno())


def _place(path: Path, target: Path) -> None:
    path.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


async def _record(connection: aiosqlite.Connection, file_id: str, size: int, mimetype: str, now: str) -> None:
    await connection.execute(
        "INSERT INTO uploads (id, size, mimetype, used_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at",
        (file_id, size, mimetype, now),
    )


async def _delete_rows(connection: aiosqlite.Connection, until: str) -> list[str]:
    rows = await connection.execute_fetchall(
        "DELETE FROM uploads WHERE id IN (SELECT id FROM uploads WHERE used_at < ? AND NOT EXISTS "
        "(SELECT 1 FROM attachments WHERE upload_id = uploads.id) ORDER BY used_at LIMIT ?) RETURNING id",
        (until, _BATCH_SIZE),
    )
    return [row["id"] for row in rows]
