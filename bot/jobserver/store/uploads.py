"""Files that clients upload for prompts; each content is stored once, by its SHA-256."""

import asyncio
import contextlib
import hashlib
import os
import tempfile
from collections.abc import AsyncIterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import IO

from sqlalchemy import delete, exists, func, select

from bot.jobserver.errors import RequestRejectedError
from bot.jobserver.store.database import Database, Session, transaction
from bot.jobserver.store.tables import attachments, uploads
from bot.queue.transaction import replacing

KEPT_UNUSED = timedelta(days=10)
"""How long a file without an instruction is kept: the client may first have to wait for an answer or this server."""
_BATCH_SIZE = 50
_ARRIVING = "arriving-"
_MEGABYTE = 1_000_000
_ADD = replacing(uploads, "used_at")


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

    def __init__(self, database: Database, folder: Path, limits: UploadLimits) -> None:
        self.database = database
        self._folder = folder
        self.limits = limits
        # Guards against uploading a file again while it is being deleted.
        self._placing = asyncio.Lock()

    async def prepare(self) -> None:
        """Creates the folder, and removes files without a row, which a killed server left there."""
        await asyncio.to_thread(self._folder.mkdir, mode=0o700, exist_ok=True)
        rows = await self.database.rows(select(uploads.c.id))
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
                async with self._placing:
                    await self._require_space(file_id, size)
                    # First the file: one without a row is removed at the next start, but a row never lacks its file.
                    await asyncio.to_thread(_place, path, self._folder / file_id)
                    await self._record(file_id, size, mimetype)
            finally:
                await asyncio.shield(asyncio.to_thread(path.unlink, missing_ok=True))

    async def delete_unused(self) -> int:
        """Deletes files without an instruction that nobody uploaded recently; returns how many."""
        async with self._placing:
            ids = await self._forget_unused()
            await asyncio.to_thread(self._remove, ids)
        return len(ids)

    @transaction
    async def _require_space(self, session: Session, file_id: str, size: int) -> None:
        used = select(func.coalesce(func.sum(uploads.c.size), 0)).where(uploads.c.id != file_id)
        if (await session.execute(used)).scalar_one() + size > self.limits.space:
            most = f"{self.limits.space / _MEGABYTE:g} MB"
            words = f"this job server stores at most {most} of files, and has no room for this one"
            raise RequestRejectedError(words, 507)

    @transaction
    async def _record(self, session: Session, file_id: str, size: int, mimetype: str) -> None:
        values = {"id": file_id, "size": size, "mimetype": mimetype, "used_at": session.time()}
        await session.execute(_ADD, values)

    @transaction
    async def _forget_unused(self, session: Session) -> list[str]:
        is_used = exists().where(attachments.c.upload_id == uploads.c.id)
        old = select(uploads.c.id).where(uploads.c.used_at < session.time(ago=KEPT_UNUSED), ~is_used)
        unused = delete(uploads).where(uploads.c.id.in_(old.order_by(uploads.c.used_at).limit(_BATCH_SIZE)))
        return list((await session.execute(unused.returning(uploads.c.id))).scalars())

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
