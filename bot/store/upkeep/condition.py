"""Reads the condition of a database without opening the store, whatever its schema."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from bot.domain.last_times import LastTime
from bot.store.database.engine import engine_for
from bot.store.database.errors import retry_transient
from bot.store.schema.migration import SchemaState, state_of
from bot.store.upkeep.last_times import ALL_TIMES, times_in

_PATIENCE = 3.0
"""Seconds to retry, and for a statement: the answer is how the database is now."""


@dataclass(frozen=True)
class DatabaseCondition:
    """The condition of a database. `clock` is its own time, in seconds since the epoch; None if it has none."""

    schema: SchemaState
    clock: float | None = None
    last: Mapping[LastTime, float] = field(default_factory=dict)


async def database_condition(url: str) -> DatabaseCondition:
    """Reads the condition of a database. Raises ConfigError, StoreError."""
    engine = engine_for(url, statement_timeout=_PATIENCE)
    try:
        return await retry_transient(lambda _end: _once(engine), retry_for=_PATIENCE)
    finally:
        await engine.dispose()


async def _once(engine: AsyncEngine) -> DatabaseCondition:
    async with engine.begin() as connection:
        return await connection.run_sync(_read)


def _read(connection: Connection) -> DatabaseCondition:
    schema, clock = state_of(connection), None
    if connection.dialect.name == "postgresql":
        clock = float(connection.execute(select(func.extract("epoch", func.clock_timestamp()))).scalar_one())
    if not schema.usable:
        return DatabaseCondition(schema, clock)
    return DatabaseCondition(schema, clock, times_in(connection.execute(ALL_TIMES).mappings()))
