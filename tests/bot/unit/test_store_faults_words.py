"""Which database errors are transient, and how the others are explained."""

import asyncio
import sqlite3

import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError, InterfaceError, InvalidRequestError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from bot.errors import ConfigError, SchemaMismatch, StoreError, StoreUnavailable
from bot.store.database.engine import engine_for
from bot.store.database.errors import classify, retry_transient


def sqlite_error(code: int, words: str = "no") -> DBAPIError:
    error = sqlite3.OperationalError(words)
    error.sqlite_errorcode = code
    return DBAPIError("SELECT 1", {}, error)


@pytest.mark.parametrize(
    "error",
    [
        sqlite_error(sqlite3.SQLITE_BUSY),
        sqlite_error(sqlite3.SQLITE_BUSY_SNAPSHOT),
        asyncpg.DeadlockDetectedError("no"),
        asyncpg.SerializationError("no"),
        asyncpg.CannotConnectNowError("no"),
        asyncpg.AdminShutdownError("no"),
        asyncpg.TooManyConnectionsError("no"),
        asyncpg.LockNotAvailableError("no"),
        asyncpg.QueryCanceledError("no"),
        asyncpg.ConnectionDoesNotExistError("no"),
        asyncpg.ReadOnlySQLTransactionError("no"),
        asyncpg.InterfaceError("connection is closed"),
        asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"),
        InterfaceError("SELECT 1", {}, Exception("connection is closed")),
        DBAPIError("SELECT 1", {}, Exception("no"), connection_invalidated=True),
        PoolTimeout("no"),
        ConnectionRefusedError("no"),
        TimeoutError(),
    ],
    ids=lambda error: type(getattr(error, "orig", error)).__name__,
)
def test_transient_database_errors_are_retried(error: Exception) -> None:
    failure = classify(error)
    assert failure is not None
    assert failure.transient
    assert isinstance(failure.error, StoreUnavailable)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (sqlite_error(sqlite3.SQLITE_FULL), StoreUnavailable, "disk is full"),
        (sqlite_error(sqlite3.SQLITE_READONLY_DBMOVED), StoreUnavailable, "may not be written"),
        (sqlite_error(sqlite3.SQLITE_CORRUPT), StoreError, "backup"),
        (sqlite_error(sqlite3.SQLITE_ERROR, "no such column: mood"), SchemaMismatch, "migrate"),
        (sqlite_error(sqlite3.SQLITE_CONSTRAINT), StoreError, "did not do"),
        (asyncpg.DiskFullError("no"), StoreUnavailable, "disk is full"),
        (asyncpg.UndefinedTableError("no"), SchemaMismatch, "migrate"),
        (asyncpg.InvalidPasswordError("no"), StoreError, "password"),
        (asyncpg.InvalidCatalogNameError("no"), StoreError, "no database of this name"),
        (asyncpg.InvalidSQLStatementNameError("no"), StoreError, "statement_cache_size=0"),
        (asyncpg.DuplicatePreparedStatementError("no"), StoreError, "statement_cache_size=0"),
        (asyncpg.CheckViolationError("no"), StoreError, "23514"),
        (InvalidRequestError("no"), StoreError, "did not do"),
    ],
)
def test_lasting_database_errors_are_explained(error: Exception, kind: type[StoreError], words: str) -> None:
    failure = classify(error)
    assert failure is not None
    assert not failure.transient
    assert type(failure.error) is kind
    assert words in str(failure.error)


async def test_an_error_of_the_work_itself_is_unchanged() -> None:
    async def attempt(_end: float) -> None:
        raise LookupError("mine")

    assert classify(LookupError("mine")) is None
    with pytest.raises(LookupError, match="mine"):
        await retry_transient(attempt)


async def test_retrying_ends() -> None:
    tries = 0

    async def attempt(end: float) -> None:
        nonlocal tries
        tries += 1
        assert end > asyncio.get_running_loop().time() - 1
        raise sqlite_error(sqlite3.SQLITE_BUSY)

    with pytest.raises(StoreUnavailable, match="locked"):
        await retry_transient(attempt, retry_for=0.2)
    assert 1 < tries < 20


@pytest.mark.parametrize("url", ["", "pagehand.db", "sqlite://", "sqlite:///:memory:", "mysql://a:planted@b/c"])
def test_an_unsupported_database_url_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        engine_for(url)
    assert "planted" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["postgres://a:planted@b/c", "postgresql://a:planted@b/c", "postgresql+psycopg://a:planted@b/c"]
)
def test_an_engine_does_not_show_the_password(url: str) -> None:
    engine = engine_for(url)
    assert engine.dialect.driver == "asyncpg"
    assert "planted" not in f"{engine!r} {engine.url}"
