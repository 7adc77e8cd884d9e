"""What every part of a transaction stands on: the connection, the time, locks, and rows that can't be read."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import RowMapping, Select, Table, bindparam, func, literal, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.models import RequestState, Thread
from bot.errors import UnreadableRow
from bot.store.rows import thread_from
from bot.store.tables import NoticeState, notices, requests, threads, watches

log = logging.getLogger(__name__)

_LIMITS = {"statement_timeout": "8s", "lock_timeout": "5s", "idle_in_transaction_session_timeout": "4s"}
"""A process that stands still keeps its locks for the last of them: whoever waits for one still gets it in time."""
_LIMITS_SINCE_17 = _LIMITS | {"transaction_timeout": "9s"}
"""A connection whose statement is prepared and not yet run is not idle in the server's eyes: only this ends it."""
_SET_ASIDE: Mapping[Table, Mapping[str, object]] = {
    requests: {"state": RequestState.REFUSED, "due_at": None, "claimed_by": None, "claimed_until": None},
    notices: {"state": NoticeState.GIVEN_UP, "due_at": None, "claimed_by": None, "claimed_until": None},
    watches: {"due_at": None, "claimed_by": None, "claimed_until": None},
}
_LOCK_THREAD = select(threads.c.id).where(threads.c.id == bindparam("thread")).with_for_update(key_share=True)
_THREAD_BY_ID = select(threads).where(threads.c.id == bindparam("thread")).with_for_update(key_share=True)


def _start(limits: Mapping[str, str]) -> Select[Any]:
    # For this transaction only: a setting of the connection would leak to others through a connection pooler.
    settings = (func.set_config(name, limit, literal(True)) for name, limit in limits.items())
    return select(func.extract("epoch", func.clock_timestamp()), *settings)


_START, _START_SINCE_17 = _start(_LIMITS), _start(_LIMITS_SINCE_17)


async def start_postgres(connection: AsyncConnection) -> float:
    """Sets the transaction's limits; returns the database's time."""
    has_17 = (connection.dialect.server_version_info or ()) >= (17,)
    row = (await connection.execute(_START_SINCE_17 if has_17 else _START)).one()
    return float(row[0])


class Session:
    """An open transaction at `now`."""

    def __init__(self, connection: AsyncConnection, now: float) -> None:
        self._connection = connection
        self._now = now
        self._locked: set[str] = set()

    @property
    def now(self) -> float:
        """The time of this transaction on the store's clock."""
        return self._now

    def _insert(self, table: Table) -> "postgresql.Insert | sqlite.Insert":
        """An INSERT that knows ON CONFLICT, which each database has by itself."""
        if self._connection.dialect.name == "postgresql":
            return postgresql.insert(table)
        return sqlite.insert(table)

    async def _rows(self, statement: Select[Any], **values: object) -> Sequence[RowMapping]:
        result = await self._connection.execute(statement, values)
        return list(result.mappings())

    async def _locked_thread(self, statement: Select[Any], **values: object) -> Thread | None:
        rows = await self._rows(statement, **values)
        if not rows:
            return None
        thread = thread_from(rows[0])
        self._locked.add(thread.id)
        return thread

    async def _lock(self, thread_id: str) -> None:
        """Locks a thread unless this transaction has done so: it is one at a time that adds to a thread's notices, so
        that their ids are in the order of their commits.
        """
        if thread_id not in self._locked:
            await self._connection.execute(_LOCK_THREAD, {"thread": thread_id})
            self._locked.add(thread_id)

    async def thread(self, thread_id: str) -> Thread | None:
        """The thread, locked till the end of the transaction."""
        return await self._locked_thread(_THREAD_BY_ID, thread=thread_id)

    async def _set_aside(self, table: Table, unreadable: Iterable[tuple[Any, UnreadableRow]]) -> None:
        """Ends rows that can't be read, so that they hold up nothing else."""
        key = next(iter(table.primary_key))
        for row_id, error in unreadable:
            values = dict(_SET_ASIDE[table])
            if "problem" in table.c:
                values["problem"] = str(error)
            await self._connection.execute(update(table).where(key == row_id).values(values))
            log.error("A row of %s was set aside: %s", table.name, error)
