"""An open transaction of a database, and statements that each database writes in its own way."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Column, ColumnElement, CursorResult, Executable, RowMapping, Select, Table, func, literal, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.queue.engine import DatabaseConnection

InsertInto = Callable[[Table], postgresql.Insert | sqlite.Insert]
"""Returns an INSERT that supports ON CONFLICT, in the database's dialect."""

_TIMEOUTS = {"statement_timeout": "8s", "lock_timeout": "5s", "idle_in_transaction_session_timeout": "4s"}
"""A process that hangs keeps its locks for the last of these times; whoever waits for one still gets it in time."""
_TIMEOUTS_SINCE_17 = _TIMEOUTS | {"transaction_timeout": "9s"}
"""PostgreSQL does not consider a connection idle whose statement is prepared but not yet run; only this ends it."""


def _start(timeouts: Mapping[str, str]) -> Select[Any]:
    # For this transaction only: a setting of the connection would leak to others through a connection pooler.
    settings = (func.set_config(name, timeout, literal(True)) for name, timeout in timeouts.items())
    return select(func.extract("epoch", func.clock_timestamp()), *settings)


_START, _START_SINCE_17 = _start(_TIMEOUTS), _start(_TIMEOUTS_SINCE_17)


async def start_postgres(connection: AsyncConnection) -> float:
    """Sets the transaction's timeouts; returns the database's time."""
    has_17 = (connection.dialect.server_version_info or ()) >= (17,)
    row = (await connection.execute(_START_SINCE_17 if has_17 else _START)).one()
    return float(row[0])


ForEachDialect = Mapping[str, Executable]
"""A statement for each database, by the name of its dialect."""


def for_each_dialect(build: Callable[[InsertInto], Executable]) -> ForEachDialect:
    """Returns a statement that each database writes in its own way."""
    return {"postgresql": build(postgresql.insert), "sqlite": build(sqlite.insert)}


def adding(table: Table) -> ForEachDialect:
    """Returns an INSERT that leaves a row which is there already as it is."""
    return for_each_dialect(lambda into: into(table).on_conflict_do_nothing())


def upserting(
    table: Table,
    new: Callable[[Any], Mapping[str, Any]],
    *,
    where: Callable[[Any], ColumnElement[bool]] | None = None,
    returning: Sequence[Column[Any]] = (),
) -> ForEachDialect:
    """Returns an INSERT that changes a row which is there already. `new` and `where` get the columns of the row that is
    not inserted, and return what the other gets, and whether it is changed at all.
    """

    def build(into: InsertInto) -> Executable:
        insert = into(table)
        changed = insert.on_conflict_do_update(
            index_elements=list(table.primary_key), set_=new(insert.excluded), where=where and where(insert.excluded)
        )
        return changed.returning(*returning) if returning else changed

    return for_each_dialect(build)


def replacing(table: Table, *names: str) -> ForEachDialect:
    """Returns an INSERT that replaces these columns of a row which is there already."""
    return upserting(table, lambda new: {name: new[name] for name in names})


class OpenTransaction:
    """An open transaction at `now`. `dialect` is sqlite or postgresql."""

    def __init__(self, connection: DatabaseConnection, now: float) -> None:
        self.connection = connection
        self.now = now
        self.dialect = connection.dialect.name

    async def execute(self, statement: Executable | ForEachDialect, values: Any = None) -> CursorResult[Any]:
        """Runs a statement; with a sequence of parameters, once for each."""
        of_dialect = statement[self.dialect] if isinstance(statement, Mapping) else statement
        return await self.connection.execute(of_dialect, values)

    async def rows(self, statement: Select[Any], **values: object) -> Sequence[RowMapping]:
        """Returns the rows that a statement finds."""
        result = await self.connection.execute(statement, values)
        return list(result.mappings())
