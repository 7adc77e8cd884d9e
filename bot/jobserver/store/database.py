"""The job server's database: a SQLite file, or PostgreSQL. Its transactions, and how it gets its tables."""

import time
from collections.abc import Awaitable, Callable, Coroutine
from copy import copy
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from sqlalchemy import URL, Connection, Executable, RowMapping, Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.errors import SchemaMismatch, StoreError
from bot.jobserver.errors import JobServerError
from bot.queue.engine import DatabaseConnection, open_database, postgres_dsn, sqlite_path
from bot.queue.errors import RETRY_FOR, StoreTimings, retry_transient
from bot.queue.migration import Schema, SchemaState
from bot.queue.postgres import listen
from bot.queue.transaction import ForEachDialect, OpenTransaction, start_postgres

_OF_1_0_0 = 7
"""The steps that 1.0.0 had taken, as SQLite's `user_version` counts them."""
_BEFORE = "of the job server before 1.0: start the last version before 1.0 with it first, or begin with a new one"


class _Schema(Schema):
    def state_of(self, connection: Connection) -> SchemaState:
        state = super().state_of(connection)
        if state is SchemaState.EMPTY and connection.dialect.name == "sqlite":
            steps = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
            if 0 < steps < _OF_1_0_0:
                raise SchemaMismatch(f"The data directory is {_BEFORE}.")
        return state


SCHEMA = _Schema(Path(__file__).parent / "migrations", "pagehand_jobserver_schema")
NEWS = "pagehand_jobserver"
"""The channel of PostgreSQL on which the ids of jobs are told that have something new."""

P = ParamSpec("P")
T = TypeVar("T")


def as_text(moment: datetime, precision: str = "microseconds") -> str:
    """Returns a moment as stored in the tables: in UTC, so that text sorts like time."""
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def sqlite_url(file: Path) -> str:
    return URL.create("sqlite", database=str(file)).render_as_string()


class Session(OpenTransaction):
    """An open transaction."""

    @property
    def moment(self) -> datetime:
        """The time of the transaction: the database's own on PostgreSQL."""
        return datetime.fromtimestamp(self.now, UTC)

    def time(self, *, ago: timedelta = timedelta()) -> str:
        """Returns the time of the transaction, or one before it, as stored in the tables."""
        return as_text(self.moment - ago)

    async def lock(self, key: int, of: str = "") -> None:
        """Lets one transaction at a time go on from here, of those with the same key and name."""
        if self.dialect == "postgresql":
            await self.execute(select(func.pg_advisory_xact_lock(key, func.hashtext(of))))

    async def first(self, statement: Select[Any], **values: object) -> RowMapping | None:
        """Returns the first row that a statement finds."""
        return (await self.execute(statement, values)).mappings().first()


class Database:
    """Opens the database, and runs transactions in it. `now` is for tests."""

    def __init__(self, url: str, *, now: Callable[[], datetime] | None = None) -> None:
        self._url = url
        self._now = now
        self._retry_for = RETRY_FOR
        self._database = open_database(url, StoreTimings())

    async def __aenter__(self) -> Self:
        """Brings the tables up to date. Raises JobServerError."""
        try:
            await SCHEMA.migrate(self._url)
        except StoreError as error:
            raise JobServerError(f"the job server's database cannot be used: {error}") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._database.close()

    def waiting(self, seconds: float) -> "Database":
        """Returns the same database for work that nobody waits for: its transactions are tried for so long."""
        waiting = copy(self)
        waiting._retry_for = seconds  # noqa: SLF001 - its own
        return waiting

    async def transact(self, work: Callable[[Session], Awaitable[T]]) -> T:
        """Runs `work` in a transaction, which is committed as a whole or rolled back. After a deadlock, a lock or a
        lost connection `work` is repeated, so it must have no effects of its own; it awaits nothing but the session.

        Raises:
            StoreError: the database cannot be used.
        """

        async def in_transaction(connection: DatabaseConnection) -> T:
            return await work(Session(connection, await self._time(connection)))

        run = self._database.run
        return await retry_transient(lambda end: run(in_transaction, urgent=False, end=end), retry_for=self._retry_for)

    async def execute(self, statement: Executable | ForEachDialect, values: Any = None) -> int:
        """Runs one statement as a transaction; returns how many rows it changed."""
        return (await self.transact(lambda session: session.execute(statement, values))).rowcount

    async def rows(self, statement: Select[Any], **values: object) -> list[RowMapping]:
        """Returns the rows that one statement finds, which is a transaction of its own."""
        return list(await self.transact(lambda session: session.rows(statement, **values)))

    async def listen(self, heard: Callable[[str], None]) -> None:
        """Calls `heard` with the id of each job that has news, as far as PostgreSQL tells. It may end early."""
        if sqlite_path(self._url) is None:
            await listen(postgres_dsn(self._url), NEWS, heard)

    async def _time(self, connection: DatabaseConnection) -> float:
        own = await start_postgres(connection) if isinstance(connection, AsyncConnection) else time.time()
        return self._now().timestamp() if self._now else own


class InDatabase(Protocol):
    """What has methods that are transactions."""

    database: Database


S = TypeVar("S", bound=InDatabase)


def transaction(
    method: Callable[Concatenate[S, Session, P], Awaitable[T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Makes a method run in a transaction of its own (see `Database.transact`), whose session it gets."""

    @wraps(method)
    async def run(self: S, /, *arguments: P.args, **options: P.kwargs) -> T:
        return await self.database.transact(lambda session: method(self, session, *arguments, **options))

    return run
