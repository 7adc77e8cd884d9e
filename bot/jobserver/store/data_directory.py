"""The data directory that a PostgreSQL database belongs to: the uploads and the mirror of its jobs are there."""

import asyncio
import secrets
from pathlib import Path

from sqlalchemy import select

from bot.jobserver.errors import JobServerError
from bot.jobserver.store.database import Database, Session
from bot.jobserver.store.tables import data_directory
from bot.jobserver.store.uploads import uploads_folder
from bot.queue.transaction import adding

_ADD = adding(data_directory)


async def bind(database: Database, data: Path) -> None:
    """Binds a new database and a new data directory to each other.

    Raises:
        JobServerError: one of them belongs to another.
    """
    file = data / "database-id"
    own = await asyncio.to_thread(_read_or_make, file)
    is_new = not await asyncio.to_thread(uploads_folder(data).exists)

    async def work(session: Session) -> str | None:
        if is_new:
            await session.execute(_ADD, {"number": 1, "id": own})
        row = await session.first(select(data_directory.c.id))
        return None if row is None else str(row["id"])

    bound = await database.transact(work)
    if bound is None:
        raise JobServerError(
            f"the database has no jobs of the data directory {data}: restore it, or name the right one"
        )
    if bound != own:
        words = f"start one server with a database, or, if that directory is lost, write {bound} into {file}"
        raise JobServerError(f"the database belongs to another data directory than {data}: {words}")


def _read_or_make(file: Path) -> str:
    if not file.exists():
        new = file.with_suffix(".new")
        new.write_text(secrets.token_hex(16))
        new.replace(file)
    return file.read_text().strip()
