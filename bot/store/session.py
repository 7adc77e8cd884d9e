"""An open transaction, and everything there is to know about its locks.

On SQLite a transaction has the whole database to itself. On PostgreSQL others run beside it, under these rules:

1. *A thread comes first.* A thread's row stands for all that belongs to it: whoever changes the thread, adds to its
   notices, or reads one of its requests to change it, locks the thread before any row of its poll, requests or notices.
   Where one transaction had a request and wanted its thread, and another the thread and wanted the request, each would
   wait for the other, and PostgreSQL would end one of the two (which `retry_transient` then repeats).
2. *Several go by id.* Whoever locks several threads, or several polls, does so in the order of the threads' ids: the
   request sender when it opens rounds, the job poller when it saves what many polls told.
3. *Notices are added by one transaction at a time*, the one that has the thread. So the ids of a thread's notices are
   in the order of their commits, and the outbox, which delivers by id, never meets an older one later.
4. *Claims wait for nobody.* They skip rows that are locked (SKIP LOCKED): those of requests and notices together with
   their threads, whose order counts; those of polls alone, since the revision tells whether the thread has changed.
   Whose turn it is among requests is looked up without locks, and looked at again with them.
5. *An early reply waits* for whoever records where a card is: keeping one locks the threads whose cards are on their
   way into the channel, by id. So either the reply is there when the card's are taken, or the card when it is kept.
6. *Threads are locked FOR NO KEY UPDATE* (`key_share`): a row that is inserted and refers to a thread takes FOR KEY
   SHARE on it, and does not have to wait.
7. *Somebody's limit comes last.* Whoever looks at how much a person has asked for holds the person's advisory lock
   until the commit, so that of several requests at a time each sees those before it; it locks no more threads.
8. *A message's versions wait for each other*: whoever records one notes that first, before any thread is locked.
9. *Of cards that arrive in one channel, one at a time takes early replies*, under the channel's advisory lock: so the
   last sees that no other is on its way. After that it locks the threads that the replies are in.

A lock held for too long is an error (`_TIMEOUTS`), and so is a transaction that stops making progress.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import CursorResult, Executable, RowMapping, Select, Table, bindparam, func, literal, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.requests.request import RequestState
from bot.errors import UnreadableRow
from bot.store.database.sqlite_thread import ThreadConnection
from bot.store.schema.tables import NoticeState, notices, polls, requests, threads

DatabaseConnection = AsyncConnection | ThreadConnection
InsertInto = Callable[[Table], postgresql.Insert | sqlite.Insert]
"""Begins an INSERT that knows ON CONFLICT, in the database's own dialect."""

logger = logging.getLogger(__name__)

_TIMEOUTS = {"statement_timeout": "8s", "lock_timeout": "5s", "idle_in_transaction_session_timeout": "4s"}
"""A process that stands still keeps its locks for the last of them: whoever waits for one still gets it in time."""
_TIMEOUTS_SINCE_17 = _TIMEOUTS | {"transaction_timeout": "9s"}
"""A connection whose statement is prepared and not yet run is not idle in the server's eyes: only this ends it."""
_UNCLAIMED = {"due_at": None, "claimed_by": None, "claimed_until": None}
_ENDED: Mapping[Table, Mapping[str, object]] = {
    requests: {"state": RequestState.REJECTED, **_UNCLAIMED},
    notices: {"state": NoticeState.GIVEN_UP, **_UNCLAIMED},
    polls: _UNCLAIMED,
}
_LOCK_THREAD = select(threads.c.id).where(threads.c.id == bindparam("thread")).with_for_update(key_share=True)


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


def for_each_dialect(build: Callable[[InsertInto], Executable]) -> Mapping[str, Executable]:
    """A statement for each database, by its dialect's name."""
    return {"postgresql": build(postgresql.insert), "sqlite": build(sqlite.insert)}


class Session:
    """An open transaction at `now`. `dialect` is sqlite or postgresql."""

    def __init__(self, connection: DatabaseConnection, now: float) -> None:
        self.connection = connection
        self.now = now
        self.dialect = connection.dialect.name
        self._locked: set[str] = set()

    async def execute(self, statement: Executable, values: Any = None) -> CursorResult[Any]:
        """Runs a statement; with a sequence of values once for each."""
        return await self.connection.execute(statement, values)

    async def rows(self, statement: Select[Any], **values: object) -> Sequence[RowMapping]:
        """The rows that a statement finds."""
        result = await self.connection.execute(statement, values)
        return list(result.mappings())

    async def lock_thread(self, thread_id: str) -> None:
        """Locks a thread unless this transaction has done so."""
        if thread_id not in self._locked:
            await self.execute(_LOCK_THREAD, {"thread": thread_id})
            self._locked.add(thread_id)

    def note_locked(self, thread_ids: Iterable[str]) -> None:
        """Notes that threads are locked by now."""
        self._locked.update(thread_ids)

    async def end_unreadable(self, table: Table, unreadable: Iterable[tuple[Any, UnreadableRow]]) -> None:
        """Ends rows that cannot be read, so that they hold up nothing else."""
        key = next(iter(table.primary_key))
        for row_id, error in unreadable:
            values = dict(_ENDED[table])
            if "problem" in table.c:
                values["problem"] = str(error)
            await self.execute(update(table).where(key == row_id).values(values))
            logger.error("A row of %s was set aside: %s", table.name, error)
