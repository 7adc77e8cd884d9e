"""Files in the database, in chunks, so that every machine has them. None is in memory as a whole."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterable, AsyncIterator
from datetime import timedelta
from pathlib import Path

from sqlalchemy import ColumnElement, delete, select, update

from bot.errors import StoreError
from bot.jobserver.errors import JobServerError
from bot.jobserver.store.database import Database, Session, transaction
from bot.jobserver.store.tables import EXPIRES, chunks, files, instructions
from bot.queue.transaction import adding

CHUNK_BYTES = 1_000_000
_ARRIVES_WITHIN = timedelta(days=1)
"""Whatever has not arrived by then was left by a process that was killed."""
_DELETED_AT_ONCE = 20
_ADD, _ADD_CHUNK = adding(files), adding(chunks)
"""Once more, if the answer to the commit was lost."""


class FileStore:
    """A file expires unless the transaction that names it also keeps it; expired ones are deleted in batches."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def write(self, pieces: AsyncIterable[bytes], file_id: str = "") -> str:
        """Stores a file that nothing keeps yet, and returns its id. If `pieces` fail, it expires at once."""
        file_id, position = file_id or new_file_id(), 0
        await self._begin(file_id)
        try:
            async for chunk in _in_chunks(pieces):
                values = {"file": file_id, "position": position, "content": chunk}
                await self.database.execute(_ADD_CHUNK, values)
                position += 1
        except BaseException:
            with contextlib.suppress(StoreError):
                await asyncio.shield(self._drop(file_id))
            raise
        return file_id

    async def read(self, file_id: str) -> AsyncIterator[bytes]:
        """Yields a file's chunks; nothing if it does not exist."""
        position, of_file = 0, select(chunks.c.content).where(chunks.c.file == file_id)
        while found := await self.database.rows(of_file.where(chunks.c.position == position)):
            yield bytes(found[0]["content"])
            position += 1

    async def logs_of(self, job_id: str) -> list[str]:
        """Returns the ids of a job's logs, the oldest first."""
        stored = select(instructions.c.log).where(instructions.c.job_id == job_id, instructions.c.log.is_not(None))
        return [row["log"] for row in await self.database.rows(stored.order_by(instructions.c.number))]

    @transaction
    async def delete_expired(self, session: Session) -> int:
        """Deletes some chunks of an expired file, with the last ones also the file; returns 0 if there is none."""
        expired = select(files.c.id).where(EXPIRES, files.c.expires_at <= session.time())
        # One process at a time: what another one is deleting would seem to be the last chunks.
        first = expired.order_by(files.c.expires_at).limit(1)
        row = await session.first(first.with_for_update(skip_locked=True))
        if row is None:
            return 0
        of_file = chunks.c.file == row["id"]
        some = select(chunks.c.position).where(of_file).limit(_DELETED_AT_ONCE)
        deleted = (await session.execute(delete(chunks).where(of_file, chunks.c.position.in_(some)))).rowcount
        if deleted < _DELETED_AT_ONCE:
            await session.execute(delete(files).where(files.c.id == row["id"]))
        return 1

    @transaction
    async def _begin(self, session: Session, file_id: str) -> None:
        values = {"id": file_id, "expires_at": session.time(ago=-_ARRIVES_WITHIN)}
        await session.execute(_ADD, values)

    @transaction
    async def _drop(self, session: Session, file_id: str) -> None:
        await drop_files(session, files.c.id == file_id)


def new_file_id() -> str:
    return secrets.token_hex(16)


async def keep_file(session: Session, file_id: str) -> None:
    """Makes a file stay, in the transaction that names it. Raises JobServerError if it has expired."""
    arrived = update(files).where(files.c.id == file_id, files.c.expires_at > session.time())
    if not (await session.execute(arrived.values(expires_at=None))).rowcount:
        raise JobServerError("a file took too long to arrive")


async def drop_files(session: Session, which: ColumnElement[bool]) -> None:
    """Has files deleted soon, in the transaction that no longer names them."""
    await session.execute(update(files).where(which).values(expires_at=session.time()))


async def pieces_of(path: Path, size: int = CHUNK_BYTES) -> AsyncIterator[bytes]:
    """Yields the contents of a file on the disk, in pieces of that size but for the last."""
    with await asyncio.to_thread(path.open, "rb") as stream:
        while piece := await asyncio.to_thread(stream.read, size):
            yield piece


async def write_to(path: Path, pieces: AsyncIterable[bytes]) -> int:
    """Writes a new file on the disk, and returns its size."""
    size = 0
    with await asyncio.to_thread(path.open, "xb") as stream:
        async for piece in pieces:
            size += await asyncio.to_thread(stream.write, piece)
    return size


async def _in_chunks(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    waiting = bytearray()
    async for piece in pieces:
        waiting += piece
        while len(waiting) >= CHUNK_BYTES:
            yield bytes(waiting[:CHUNK_BYTES])
            del waiting[:CHUNK_BYTES]
    if waiting:
        yield bytes(waiting)
