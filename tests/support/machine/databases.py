"""The databases that a state machine runs on: each run has its own, with empty tables."""

import shutil
import sqlite3
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import asyncpg
from support.scratch import IN_MEMORY
from support.servers.postgres import PostgresServer

Row = dict[str, Any]


class Database(Protocol):
    """The database of one run."""

    async def open(self) -> str:
        """Creates it and returns its URL."""

    async def rows(self, table: str) -> list[Row]:
        """Returns the rows of a table."""

    async def close(self) -> None:
        """Removes it."""


class SqliteDatabase:
    """A copy of a file with empty tables."""

    def __init__(self, template: Path) -> None:
        self._template = template
        self._directory = TemporaryDirectory(dir=IN_MEMORY)
        self._connection: sqlite3.Connection | None = None

    async def open(self) -> str:
        path = Path(self._directory.name) / "pagehand.db"
        shutil.copy(self._template, path)
        self._connection = sqlite3.connect(path)
        self._connection.row_factory = sqlite3.Row
        return f"sqlite:///{path}"

    async def rows(self, table: str) -> list[Row]:
        assert self._connection is not None
        return [dict(row) for row in self._connection.execute(f"SELECT * FROM {table}")]  # noqa: S608 - a table of ours

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._directory.cleanup()


class PostgresDatabase:
    """A database of a running server."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._stack = AsyncExitStack()
        self._connection: Any = None

    async def open(self) -> str:
        url = await self._stack.enter_async_context(self._server.database())
        self._connection = await asyncpg.connect(url)
        self._stack.push_async_callback(self._connection.close)
        return url

    async def rows(self, table: str) -> list[Row]:
        return [dict(row) for row in await self._connection.fetch(f"SELECT * FROM {table}")]  # noqa: S608 - a table of ours

    async def close(self) -> None:
        await self._stack.aclose()
