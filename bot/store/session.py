"""An open transaction, and the rules for its locks.

On SQLite a transaction has the whole database to itself. On PostgreSQL transactions run concurrently, by these rules:

1. *A thread comes first.* A thread's row represents everything that belongs to it. Whoever changes the thread, adds
   notices, or reads one of its requests to change it, locks the thread before any row of its poll, requests or notices.
   Otherwise, one transaction could hold a request and want its thread while another holds the thread and wants the
   request, and PostgreSQL would end one of them (which `retry_transient` then repeats).
2. *Several are locked in the order of ids.* This applies to threads and, by the ids of their threads, to polls: the
   request sender does it when it opens rounds, the job poller when it saves the results of many polls.
3. *Notices are added by one transaction at a time*, the one that has locked the thread. So the ids of a thread's
   notices are in the order of their commits, and the outbox, which delivers by id, never finds an older one later.
4. *Claims wait for nobody.* They skip rows that are locked (SKIP LOCKED): those of requests and notices together with
   their threads, because of the order; those of polls alone, since the revision tells whether the thread has changed.
   The next requests are determined without locks, and checked again with them.
5. *An early reply waits* for whoever records where a card is: storing a reply locks the threads whose cards are being
   posted to the channel, by id. So either the reply is there when the card's replies are taken, or the card is known.
6. *Threads are locked FOR NO KEY UPDATE* (`key_share`): a row that is inserted and refers to a thread takes FOR KEY
   SHARE on it and does not have to wait.
7. *A person's limit comes last.* Whoever counts a person's requests holds the person's advisory lock until the
   commit, so each of several concurrent requests sees the ones before it. It locks no more threads after that.
8. *A message's versions wait for each other*: a version is recorded before any thread is locked.
9. *Cards that arrive in one channel take early replies one at a time*, under the channel's advisory lock, so the
   last one sees that no other is being posted. After that, it locks the threads of the replies.

A lock held for too long is an error (`_TIMEOUTS`), and so is a transaction that stops making progress.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    CursorResult,
    Executable,
    RowMapping,
    Select,
    Table,
    bindparam,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.requests.request import RequestState
from bot.errors import UnreadableRow
from bot.runtime.logging import ThrottledLogger
from bot.store.database.engine import DatabaseConnection
from bot.store.schema.tables import NoticeState, notices, polls, requests, threads

InsertInto = Callable[[Table], postgresql.Insert | sqlite.Insert]
"""Returns an INSERT that supports ON CONFLICT, in the database's dialect."""

logger = logging.getLogger(__name__)

_TIMEOUTS = {"statement_timeout": "8s", "lock_timeout": "5s", "idle_in_transaction_session_timeout": "4s"}
"""A process that hangs keeps its locks for the last of these times; whoever waits for one still gets it in time."""
_TIMEOUTS_SINCE_17 = _TIMEOUTS | {"transaction_timeout": "9s"}
"""PostgreSQL does not consider a connection idle whose statement is prepared but not yet run; only this ends it."""
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


class Session:
    """An open transaction at `now`. `dialect` is sqlite or postgresql; `rare_log` is for what may be seen often."""

    def __init__(self, connection: DatabaseConnection, now: float, rare_log: ThrottledLogger) -> None:
        self.connection = connection
        self.now = now
        self.rare_log = rare_log
        self.dialect = connection.dialect.name
        self.takeovers = 0
        """How many rows were claimed that somebody else had claimed, whose lease ran out."""
        self._locked: set[str] = set()

    async def execute(self, statement: Executable | ForEachDialect, values: Any = None) -> CursorResult[Any]:
        """Runs a statement; with a sequence of parameters, once for each."""
        of_dialect = statement[self.dialect] if isinstance(statement, Mapping) else statement
        return await self.connection.execute(of_dialect, values)

    async def rows(self, statement: Select[Any], **values: object) -> Sequence[RowMapping]:
        """Returns the rows that a statement finds."""
        result = await self.connection.execute(statement, values)
        return list(result.mappings())

    async def lock_thread(self, thread_id: str) -> None:
        """Locks a thread unless this transaction has done so."""
        if thread_id not in self._locked:
            await self.execute(_LOCK_THREAD, {"thread": thread_id})
            self._locked.add(thread_id)

    def note_locked(self, thread_ids: Iterable[str]) -> None:
        """Records that these threads are locked."""
        self._locked.update(thread_ids)

    async def end_unreadable(self, table: Table, unreadable: Iterable[tuple[Any, UnreadableRow]]) -> None:
        """Ends unreadable rows, so that they block nothing else."""
        key = next(iter(table.primary_key))
        for row_id, error in unreadable:
            values = dict(_ENDED[table])
            if "problem" in table.c:
                values["problem"] = str(error)
            await self.execute(update(table).where(key == row_id).values(values))
            logger.error("A row of %s was set aside: %s", table.name, error)


class Part:
    """The base of a transaction's parts, each of which is about one subject."""

    def __init__(self, session: Session) -> None:
        self._session = session
