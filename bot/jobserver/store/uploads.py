"""Files that clients upload for prompts; each content is stored once for a project, by its SHA-256."""

import asyncio
import hashlib
import shutil
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sqlalchemy import delete, exists, func, select, update

from bot.jobserver.errors import RequestRejectedError
from bot.jobserver.store.database import Session, transaction
from bot.jobserver.store.files import FileStore, drop_files, keep_file, pieces_of
from bot.jobserver.store.tables import attachments, files, uploads
from bot.queue.transaction import replacing

KEPT_UNUSED = timedelta(days=10)
"""How long a file without an instruction is kept: the client may first have to wait for an answer or this server."""
_BATCH_SIZE = 50
_MEGABYTE = 1_000_000
_ADDING = 8_211
"""The key of PostgreSQL's advisory lock for the space that is left."""
_ADD = replacing(uploads, "used_at", "file")


@dataclass(frozen=True)
class UploadLimits:
    """In bytes: the size of one file, and of all files together."""

    file: int
    space: int

    def too_large(self) -> RequestRejectedError:
        return RequestRejectedError(f"the file is larger than {self.file / _MEGABYTE:g} MB", 413)


class UploadStore:
    """Stores a project's files by id; one that has not arrived as a whole has no row."""

    def __init__(self, store: FileStore, project_id: str, limits: UploadLimits) -> None:
        self.database = store.database
        self._store = store
        self._project_id = project_id
        self._is_own = uploads.c.project_id == project_id
        self.limits = limits

    async def add(self, file_id: str, mimetype: str, pieces: AsyncIterable[bytes]) -> None:
        """Stores a file. Uploading the same content again extends the time it is kept.

        Raises:
            RequestRejectedError: the digest differs, the file is too large, or there is no room for it.
        """
        digest, size = hashlib.sha256(), 0

        async def checked() -> AsyncIterator[bytes]:
            nonlocal size
            async for piece in pieces:
                size += len(piece)
                if size > self.limits.file:
                    raise self.limits.too_large()
                digest.update(piece)
                yield piece
            if digest.hexdigest() != file_id:
                raise RequestRejectedError("the SHA-256 of these bytes differs from the one in the address")

        stored = await self._store.write(checked())
        if not await self._record(file_id, stored, size, mimetype):
            most = f"{self.limits.space / _MEGABYTE:g} MB"
            words = f"this project may have at most {most} of files, and has no room for this one"
            raise RequestRejectedError(words, 507)

    async def take_over(self, folder: Path) -> None:
        """Reads in the folder in which 1.0.0 kept them, and removes it. After a kill it goes on where it was."""
        if not await asyncio.to_thread(folder.is_dir):
            return
        for row in await self.database.rows(select(uploads.c.id).where(self._is_own, uploads.c.file.is_(None))):
            path = folder / row["id"]
            if await asyncio.to_thread(path.is_file):
                await self._take(row["id"], await self._store.write(pieces_of(path)))
        await asyncio.to_thread(shutil.rmtree, folder)

    @transaction
    async def delete_unused(self, session: Session) -> int:
        """Deletes files without an instruction that nobody uploaded recently; returns how many."""
        is_used = exists().where(
            attachments.c.project_id == uploads.c.project_id, attachments.c.upload_id == uploads.c.id
        )
        old = (self._is_own, uploads.c.used_at < session.time(ago=KEPT_UNUSED), ~is_used)
        batch = select(uploads.c.id).where(*old).order_by(uploads.c.used_at).limit(_BATCH_SIZE)
        # Asked twice: PostgreSQL looks at a row again for which it had to wait, and it may have been uploaded again.
        unused = delete(uploads).where(uploads.c.id.in_(batch), *old)
        gone = list((await session.execute(unused.returning(uploads.c.file))).scalars())
        await drop_files(session, files.c.id.in_(gone))
        return len(gone)

    @transaction
    async def _record(self, session: Session, file_id: str, stored: str, size: int, mimetype: str) -> bool:
        """Returns False if there is no room."""
        await session.lock(_ADDING, self._project_id)
        used = select(func.coalesce(func.sum(uploads.c.size), 0)).where(self._is_own, uploads.c.id != file_id)
        has_room = bool((await session.execute(used)).scalar_one() + size <= self.limits.space)
        found = select(uploads.c.file).where(self._is_own, uploads.c.id == file_id)
        row = await session.first(found.with_for_update())  # a sweep may be deleting it
        known = row["file"] if row else None
        if not has_room or known:
            await drop_files(session, files.c.id == stored)
        else:
            await keep_file(session, stored)
        if has_room:
            values = {"project_id": self._project_id, "id": file_id, "size": size, "mimetype": mimetype}
            await session.execute(_ADD, values | {"used_at": session.time(), "file": known or stored})
        return has_room

    @transaction
    async def _take(self, session: Session, file_id: str, stored: str) -> None:
        await keep_file(session, stored)
        await session.execute(update(uploads).where(self._is_own, uploads.c.id == file_id).values(file=stored))
