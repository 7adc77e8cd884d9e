"""PostgreSQL: its engine, and a pool of connections, some of which are reserved for work that people wait for.

A connection pooler in transaction mode (PgBouncer) runs each transaction on another connection of the server. A named
prepared statement would exist on only one of them, so behind a pooler there are none. Without a pooler they are kept,
which halves the server's work.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Dialect, event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.util import await_only

from bot.errors import ConfigError, StoreUnavailable
from bot.queue.errors import StoreTimings
from bot.runtime.backoff import Backoff

if TYPE_CHECKING:
    import asyncpg

T = TypeVar("T")
logger = logging.getLogger(__name__)


_FORM = (
    "The database's URL cannot be used. It looks like postgresql://user:password@host:5432/name, with special "
    "characters percent-encoded; files that it names, such as sslrootcert, have to exist."
)
_CONNECT_TIMEOUT = 5.0
_CHECK_S = 5.0
_RECONNECTION = Backoff(first=1.0, longest=60.0)
_KEPT = 100
"""Prepared statements that a connection keeps."""
_NOT_FOR_THE_SERVER = {
    # Hosting providers add this one to their URLs.
    "channel_binding",
    # Tells other programs about a pooler.
    "max_cacheable_statement_size",
    "max_cached_statement_lifetime",
    "pgbouncer",
    "prepared_statement_cache_size",
    "prepared_statements",
    "statement_cache_size",
}
"""URL parameters that asyncpg would pass to the server as settings, which the server would reject."""
_POOLED = {"pgbouncer=true", "prepared_statement_cache_size=0", "prepared_statements=false", "statement_cache_size=0"}
"""Each means that no statement may stay prepared."""


def postgres_engine(dsn: str, statement_timeout: float, *, autocommit: bool = False) -> AsyncEngine:
    """Returns the engine of `postgresql://...`, with everything that libpq supports."""
    connections = _Connections(dsn, statement_timeout)
    engine = create_async_engine(
        "postgresql+asyncpg://",
        isolation_level="AUTOCOMMIT" if autocommit else "READ COMMITTED",
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=_CONNECT_TIMEOUT,
        pool_recycle=1800,
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "do_connect", connections.connect)
    event.listen(engine.sync_engine, "checkout", _refuse_closed)
    return engine


async def listen(dsn: str, channel: str, heard: Callable[[str], None]) -> None:
    """Calls `heard` with what is told on a channel, from a connection of its own. Some of it is missed, and behind a
    pooler everything: then it returns.
    """
    connections, failures = _Connections(dsn, _CONNECT_TIMEOUT), 0
    while True:
        try:
            connection = await connections.opened()
            try:
                if connections.pooled:
                    return
                await connection.add_listener(channel, lambda *told: heard(str(told[-1])))
                failures = 0
                while True:
                    await asyncio.sleep(_CHECK_S)
                    await connection.execute("SELECT 1")
            finally:
                connection.terminate()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a connection
            failures += 1
            logger.info("What the database tells is not heard for a while (%s).", type(error).__name__)
            await asyncio.sleep(_RECONNECTION.delay(failures))


def _refuse_closed(connection: Any, *_: object) -> None:
    # `pool_pre_ping` would cost three round trips per transaction. A connection that broke just now, or silently,
    # fails at BEGIN, and the transaction is retried (`retry_transient`).
    if connection.driver_connection.is_closed():
        raise DisconnectionError


class _Connections:
    """Opens connections, and detects whether there is a pooler."""

    def __init__(self, dsn: str, statement_timeout: float) -> None:
        address, _, text = dsn.partition("?")
        options = [option for option in text.split("&") if option]
        known = [option for option in options if option.partition("=")[0] not in _NOT_FOR_THE_SERVER]
        self._dsn = f"{address}?{'&'.join(known)}"
        self._statement_timeout = statement_timeout
        self.pooled = not _POOLED.isdisjoint(options)

    def connect(self, dialect: Dialect, *_: object) -> Any:
        connection = await_only(self.opened())

        async def opened() -> "asyncpg.Connection[Any]":
            return connection

        kept = {"prepared_statement_cache_size": _KEPT}
        nothing_kept = {"prepared_statement_cache_size": 0, "prepared_statement_name_func": _no_name}
        return dialect.connect(async_creator_fn=opened, **(nothing_kept if self.pooled else kept))

    async def opened(self) -> "asyncpg.Connection[Any]":
        connection = await self._open()
        try:
            if self.pooled or not await _is_pooled(connection):
                return connection
        except BaseException:
            connection.terminate()
            raise
        logger.info("The database is reached through a connection pooler.")
        self.pooled = True
        await connection.close(timeout=_CONNECT_TIMEOUT)
        return await self._open()

    async def _open(self) -> "asyncpg.Connection[Any]":
        import asyncpg  # noqa: PLC0415 - only imported where it is used

        # asyncpg parses the URL: unlike SQLAlchemy, it knows libpq's parameters (sslmode, several hosts, sockets).
        try:
            return await asyncpg.connect(
                self._dsn,
                timeout=_CONNECT_TIMEOUT,
                command_timeout=self._statement_timeout,
                statement_cache_size=0 if self.pooled else _KEPT,
                server_settings={"application_name": APPLICATION_NAME},
            )
        except ValueError:
            # Not quoted: the part that cannot be parsed may belong to the password.
            raise ConfigError([_FORM]) from None


def _no_name() -> str:
    return ""


async def _is_pooled(connection: "asyncpg.Connection[Any]") -> bool:
    """Returns whether a server process other than the one that accepted the connection runs queries: a pooler.

    The query has no name, since every pooler allows that.
    """
    question = await connection.prepare("SELECT pg_backend_pid()", name="", timeout=_CONNECT_TIMEOUT)
    return bool(await question.fetchval(timeout=_CONNECT_TIMEOUT) != connection.get_server_pid())


CONNECTIONS = 10
"""The most connections that one process opens. They are kept: a new one costs as much as many transactions, and has no
prepared statements yet.
"""
APPLICATION_NAME = "pagehand"
"""The name under which the server lists our connections."""
RESERVED = 3
"""Connections that only urgent work may use."""


class PostgresPool:
    """Runs units of work in transactions, each on a connection of the pool."""

    def __init__(self, engine: AsyncEngine, timings: StoreTimings) -> None:
        self._engine = engine
        self._timings = timings
        self._turns = asyncio.Semaphore(CONNECTIONS - RESERVED)
        self._urgent = 0
        self._nothing_urgent = asyncio.Event()
        self._nothing_urgent.set()

    async def run(self, work: Callable[[AsyncConnection], Awaitable[T]], *, urgent: bool, end: float) -> T:
        """Runs `work` in a transaction and commits it (see SqliteThread.run)."""
        if urgent:
            return await self._urgently(work)
        try:
            async with asyncio.timeout_at(end):
                await self._turns.acquire()
        except TimeoutError:
            raise StoreUnavailable("The database is too busy.") from None
        try:
            if self._urgent:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._timings.yielding):
                        await self._nothing_urgent.wait()
            return await self._transaction(work)
        finally:
            self._turns.release()

    async def close(self) -> None:
        """Closes every connection, within bounded time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timings.closing):
                await self._engine.dispose()

    async def _urgently(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        self._urgent += 1
        self._nothing_urgent.clear()
        try:
            return await self._transaction(work)
        finally:
            self._urgent -= 1
            if not self._urgent:
                self._nothing_urgent.set()

    async def _transaction(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        async with self._engine.begin() as connection:
            return await work(connection)
