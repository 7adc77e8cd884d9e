"""Which uploaded files came with which instruction."""

from collections.abc import Sequence

import aiosqlite

from bot.jobserver.errors import FileNotUploadedError
from bot.jobserver.models import AttachedFile
from bot.jobserver.store.records import Attachment

_MOST_ATTACHMENTS = 100
"""Files of one job that an editor is given, the newest."""


async def check_uploaded(connection: aiosqlite.Connection, files: Sequence[AttachedFile]) -> None:
    """Raises FileNotUploadedError for the first file that is not kept here."""
    for index, file in enumerate(files):
        cursor = await connection.execute("SELECT 1 FROM uploads WHERE id = ?", (file.id,))
        if await cursor.fetchone() is None:
            raise FileNotUploadedError(
                f"files.{index}.id: there is no such file here: upload it with PUT, then send this again"
            )


async def attach(connection: aiosqlite.Connection, instruction: int, files: Sequence[AttachedFile]) -> None:
    """Records the files of a new instruction."""
    await connection.executemany(
        "INSERT INTO attachments (instruction, position, upload_id, name, mimetype) VALUES (?, ?, ?, ?, ?)",
        [(instruction, position, file.id, file.name, file.mimetype) for position, file in enumerate(files)],
    )


async def attachments_until(connection: aiosqlite.Connection, job_id: str, number: int) -> tuple[Attachment, ...]:
    """Returns the files that came with a job's instructions up to this one, the oldest first."""
    rows = await connection.execute_fetchall(
        "SELECT attachments.*, uploads.size, coalesce(attachments.mimetype, uploads.mimetype) AS kind "
        "FROM instructions JOIN attachments ON instruction = number JOIN uploads ON uploads.id = upload_id "
        "WHERE job_id = ? AND number <= ? ORDER BY number DESC, position DESC LIMIT ?",
        (job_id, number, _MOST_ATTACHMENTS),
    )
    return tuple(
        Attachment(row["upload_id"], row["name"], row["kind"], row["size"], row["instruction"])
        for row in reversed(list(rows))
    )
