"""A SQLite database: durable, one transaction at a time."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import aiosqlite

from bot.jobserver.errors import JobServerError
from bot.runtime.private_files import owner_only


class Database:
    """A connection with WAL and full synchronization.

    `steps` create and upgrade the tables: each consists of statements that end with a semicolon (which occurs nowhere
    else) and takes a file from one version to the next, the first one from an empty file. The file's `user_version`
    counts the steps applied. Never change a released step: add another one.
    """

    def __init__(self, path: Path, steps: Sequence[str]) -> None:
        self._path = path
        self._steps = tuple(steps)
        self._lock = asyncio.Lock()
        self._connection: aiosqlite.Connection | None = None

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(owner_only, self._path)
        connection = await aiosqlite.connect(self._path, isolation_level=None)
        self._connection = connection
        connection.row_factory = aiosqlite.Row
        await connection.execute("PRAGMA busy_timeout = 10000")
        await connection.execute("PRAGMA journal_mode = WAL")
        await connection.execute("PRAGMA synchronous = FULL")
        await connection.execute("PRAGMA foreign_keys = ON")
        try:
            await self._prepare()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _prepare(self) -> None:
        """Applies all missing steps, or none of them."""
        async with self.transaction() as connection:
            row = await fetch_row(connection, "PRAGMA user_version")
            version = row[0] if row else 0
            if version > len(self._steps):
                raise JobServerError(f"{self._path.name} was written by a newer version: update Pagehand")
            for step in self._steps[version:]:
                for statement in step.split(";"):
                    await connection.execute(statement)
            await connection.execute(f"PRAGMA user_version = {len(self._steps)}")

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[aiosqlite.Connection]:
        """Runs a transaction, which is committed as a whole or rolled back; the next one waits until it ends."""
        if self._connection is None:
            raise JobServerError("the job server's database is closed")
        async with self._lock:
            connection = self._connection
            try:
                await connection.execute("BEGIN IMMEDIATE")
                yield connection
            except BaseException:
                with contextlib.suppress(sqlite3.OperationalError):  # it had not begun
                    await asyncio.shield(connection.execute("ROLLBACK"))
                raise
            await asyncio.shield(connection.execute("COMMIT"))

    async def execute(self, statement: str, parameters: Iterable[object] = ()) -> int:
        """Runs one statement as a transaction; returns how many rows it changed."""
        async with self.transaction() as connection:
            return (await connection.execute(statement, parameters)).rowcount

    async def rows(self, statement: str, parameters: Iterable[object] = ()) -> list[sqlite3.Row]:
        """Returns the rows that one statement yields, which is a transaction of its own."""
        async with self.transaction() as connection:
            return list(await connection.execute_fetchall(statement, parameters))


async def fetch_row(
    connection: aiosqlite.Connection, statement: str, parameters: Iterable[object] = ()
) -> sqlite3.Row | None:
    """Returns the first row that a statement yields, or None."""
    cursor = await connection.execute(statement, tuple(parameters))
    return await cursor.fetchone()
