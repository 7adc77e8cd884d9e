"""Translates database errors into Pagehand's, and decides whether a retry helps."""

import asyncio
import random
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy.exc import DBAPIError, InterfaceError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from bot.errors import SchemaMismatch, StoreError, StoreUnavailable
from bot.runtime.backoff import Backoff

T = TypeVar("T")


RETRY_FOR = 10.0
"""Seconds after which no new attempt is made."""
_BACKOFF = Backoff(first=0.02, longest=1.0, spread=(0.5, 1.0))

_FULL = "The database's disk is full. Nothing was lost; make room on it. If Pagehand is running, it goes on by itself."
_MIXED_UP = "A connection pooler mixes up what is prepared. Add ?statement_cache_size=0 to DATABASE_URL."
_SCHEMA = (
    "The database's tables are not those that this version of Pagehand knows. For the bot's, run `pagehand migrate`; a "
    "job server brings its own up to date when it starts."
)

_SQLITE_TRANSIENT = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_SQLITE_LASTING: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_FULL: (StoreUnavailable, _FULL),
    sqlite3.SQLITE_IOERR: (StoreUnavailable, "The database's disk could not be read or written."),
    sqlite3.SQLITE_CANTOPEN: (
        StoreUnavailable,
        "The database's file could not be opened. Check its path and its owner, and that its directory may be written.",
    ),
    sqlite3.SQLITE_READONLY: (StoreUnavailable, "The database's file may not be written. Check its owner."),
    sqlite3.SQLITE_CORRUPT: (StoreError, "The database's file is damaged. Restore it from a backup."),
    sqlite3.SQLITE_NOTADB: (StoreError, "The database's file is not a SQLite database. Check its path."),
}
_POSTGRES_LASTING: dict[str, tuple[type[StoreError], str]] = {
    "53100": (StoreUnavailable, _FULL),
    "42P01": (SchemaMismatch, _SCHEMA),
    "42703": (SchemaMismatch, _SCHEMA),
    "26000": (StoreError, _MIXED_UP),
    "42P05": (StoreError, _MIXED_UP),
    "28P01": (StoreError, "The database refuses the password. Check DATABASE_URL."),
    "28000": (StoreError, "The database refuses this user. Check DATABASE_URL."),
    "3D000": (StoreError, "There is no database of this name. Check DATABASE_URL."),
    "42501": (StoreError, "The database's user may not do this. Let it create and change tables in its schema."),
}
"""Our errors by SQLSTATE."""
_POSTGRES_TRANSIENT = ("08", "40", "53", "55", "57", "25P03", "25P04", "25006")
"""Prefixes of SQLSTATEs: connection lost, rolled back, out of resources, locked, shut down or cancelled, idle for
too long, running for too long, temporarily read-only (a standby that is taking over)."""
_CUT_OFF = (OSError, TimeoutError, InterfaceError, PoolTimeout)


@dataclass(frozen=True)
class DatabaseFailure:
    """The cause of a failed transaction. `transient`: a retry may succeed."""

    error: StoreError
    transient: bool = False


def classify(error: Exception) -> DatabaseFailure | None:
    """Translates a database's error; None for an error from elsewhere."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    sqlstate = getattr(cause, "sqlstate", None)
    if isinstance(cause, sqlite3.Error):
        return _sqlite_failure(cause)
    if sqlstate is not None:
        return _postgres_failure(str(sqlstate), type(cause).__name__)
    if _is_cut_off(error) or (isinstance(error, DBAPIError) and error.connection_invalidated):
        words = f"The database cannot be reached ({type(cause).__name__}). Check DATABASE_URL, and that it runs."
        return DatabaseFailure(StoreUnavailable(words), transient=True)
    return DatabaseFailure(_unexpected(cause)) if isinstance(error, SQLAlchemyError) else None


def _is_cut_off(error: Exception) -> bool:
    asyncpg = sys.modules.get("asyncpg")  # not imported where SQLite is used
    if asyncpg is None:
        return isinstance(error, _CUT_OFF)
    # The last one: the server ended the connection between an answer to asyncpg and its next query.
    return isinstance(error, (*_CUT_OFF, asyncpg.InterfaceError, asyncpg.InternalClientError))


def _unexpected(cause: object) -> StoreError:
    return StoreError(f"The database did not do what was asked ({type(cause).__name__}).")


def _sqlite_failure(cause: sqlite3.Error) -> DatabaseFailure:
    extended = getattr(cause, "sqlite_errorcode", 0)
    # To make room in the file beside the database is where a full disk is noticed first.
    code = sqlite3.SQLITE_FULL if extended == sqlite3.SQLITE_IOERR_SHMSIZE else extended & 0xFF
    if code in _SQLITE_TRANSIENT:
        return DatabaseFailure(StoreUnavailable("The database is locked by another program."), transient=True)
    if code in _SQLITE_LASTING:
        kind, words = _SQLITE_LASTING[code]
        return DatabaseFailure(kind(words))
    if str(cause).startswith(("no such table", "no such column")):
        return DatabaseFailure(SchemaMismatch(_SCHEMA))
    return DatabaseFailure(_unexpected(cause))


def _postgres_failure(sqlstate: str, name: str) -> DatabaseFailure:
    if sqlstate in _POSTGRES_LASTING:
        kind, words = _POSTGRES_LASTING[sqlstate]
        return DatabaseFailure(kind(words))
    # A migration by another instance invalidates prepared statements; SQLAlchemy prepares them again.
    if sqlstate.startswith(_POSTGRES_TRANSIENT) or name == "InvalidCachedStatementError":
        return DatabaseFailure(
            StoreUnavailable(f"The database is not available at the moment (SQLSTATE {sqlstate})."), transient=True
        )
    return DatabaseFailure(StoreError(f"The database did not do what was asked (SQLSTATE {sqlstate})."))


async def retry_transient(attempt: Callable[[float], Awaitable[T]], *, retry_for: float = RETRY_FOR) -> T:
    """Awaits `attempt`, and repeats it after transient errors.

    Args:
        attempt: Gets the time on the loop's clock after which no new attempt is made.
        retry_for: The seconds until then.

    Raises:
        StoreError: The translated database error.
    """
    clock = asyncio.get_running_loop().time
    end, failures = clock() + retry_for, 0
    while True:
        try:
            return await attempt(end)
        except Exception as error:
            failure = classify(error)
            if failure is None:
                raise
            failures += 1
            wait = _BACKOFF.delay(failures, jitter=random.random())  # noqa: S311 - it only spreads the attempts
            if not failure.transient or clock() + wait > end:
                raise failure.error from error
        await asyncio.sleep(wait)


@dataclass(frozen=True)
class StoreTimings:
    """Time limits in seconds.

    Attributes:
        retry_for: How long a transaction is retried after transient errors.
        sharing: SQLite: how long units may join a transaction, since all wait for its commit.
        yielding: PostgreSQL: how long other work waits at most while urgent work runs.
        closing: How long closing waits for running work, and for the server, so that one that hangs does not keep
            the process from ending.
    """

    retry_for: float = RETRY_FOR
    sharing: float = 0.02
    yielding: float = 0.05
    closing: float = 1.0
