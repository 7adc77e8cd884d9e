"""Files that clients upload for prompts; each content is stored once, by its SHA-256."""

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

from bot.jobserver.errors import RequestRejectedError
from bot.jobserver.store.database import Database, fetch_row
from bot.jobserver.store.records import as_text

KEPT_UNUSED = timedelta(days=10)
"""How long a file without an instruction is kept: the client may first have to wait for an answer or this server."""
_BATCH_SIZE = 50
_ARRIVING = "arriving-"
_MEGABYTE = 1_000_000


def uploads_folder(data: Path) -> Path:
    """Returns the folder of uploads in the server's data directory."""
    return data / "uploads"


@dataclass(frozen=True)
class UploadLimits:
    """In bytes: the size of one file, and of all files together."""

    file: int
    space: int

    def too_large(self) -> RequestRejectedError:
        return RequestRejectedError(f"the file is larger than {self.file / _MEGABYTE:g} MB", 413)


class UploadStore:
    """Stores files in `folder` by id; a file counts only if it has a row in the database."""

    def __init__(self, database: Database, folder: Path, limits: UploadLimits, *, now: Callable[[], datetime]) -> None:
        self._database = database
        self._folder = folder
        self._now = now
        self.limits = limits
        # Guards against uploading a file again while it is being deleted.
        self._placing = asyncio.Lock()

    async def prepare(self) -> None:
        """Creates the folder, and removes files without a row, which a killed server left there."""
        await asyncio.to_thread(self._folder.mkdir, mode=0o700, exist_ok=True)
        rows = await self._database.rows("SELECT id FROM uploads")
        await asyncio.to_thread(self._remove_all_but, {row["id"] for row in rows})

    async def add(self, file_id: str, mimetype: str, chunks: AsyncIterable[bytes]) -> None:
        """Stores a file. Uploading the same content again extends the time it is kept.

        Raises:
            RequestRejectedError: the digest differs, or the file is too large.
        """
        with await asyncio.to_thread(self._arriving) as stream:
            path = Path(stream.name)
            try:
                size = await self._receive(file_id, chunks, stream)
                await asyncio.to_thread(_flush, stream)
                async with self._placing, self._database.transaction() as connection:
                    others = await fetch_row(
                        connection, "SELECT coalesce(sum(size), 0) AS size FROM uploads WHERE id <> ?", (file_id,)
                    )
                    if others is None or others["size"] + size > self.limits.space:
                        most = f"{self.limits.space / _MEGABYTE:g} MB"
                        words = f"this job server stores at most {most} of files, and has no room for this one"
                        raise RequestRejectedError(words, 507)
                    await asyncio.to_thread(_place, path, self._folder / file_id)
                    await connection.execute(
                        "INSERT INTO uploads (id, size, mimetype, used_at) VALUES (?, ?, ?, ?) "
                        "ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at",
                        (file_id, size, mimetype, as_text(self._now())),
                    )
            finally:
                await asyncio.shield(asyncio.to_thread(path.unlink, missing_ok=True))

    async def delete_unused(self) -> int:
        """Deletes files without an instruction that nobody uploaded recently; returns how many."""
        async with self._placing:
            async with self._database.transaction() as connection:
                rows = await connection.execute_fetchall(
                    "DELETE FROM uploads WHERE id IN (SELECT id FROM uploads WHERE used_at < ? AND NOT EXISTS "
                    "(SELECT 1 FROM attachments WHERE upload_id = uploads.id) ORDER BY used_at LIMIT ?) RETURNING id",
                    (as_text(self._now() - KEPT_UNUSED), _BATCH_SIZE),
                )
                ids = [row["id"] for row in rows]
            # Rows first: a file without a row is removed at the next start, but a row must never lack its file.
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
            raise RequestRejectedError("the SHA-256 of these bytes differs from the one in the address")
        return size

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
    """Flushes to disk: the row is written afterwards and must not outlive the bytes."""
    stream.flush()
    os.fsync(stream.fileno())


def _place(path: Path, target: Path) -> None:
    path.replace(target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
