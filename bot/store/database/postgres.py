"""PostgreSQL: its URLs, and connections that work through a connection pooler, too.

A pooler in transaction mode (PgBouncer) gives each transaction another connection of the server's. What is prepared
under a name stays behind on one of them: so behind a pooler nothing is. Without one it is kept, which spares the server
half of its work.
"""

import logging
from typing import Any

import asyncpg
from sqlalchemy import Dialect, event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.util import await_only

from bot.errors import ConfigError
from bot.store.database.postgres_pool import APPLICATION_NAME, CONNECTIONS

_FORM = (
    "The database's URL cannot be used. It looks like postgresql://user:password@host:5432/name, with special "
    "characters percent-encoded; files that it names, such as sslrootcert, have to exist."
)
_CONNECT_TIMEOUT = 5.0
_KEPT = 100
"""Prepared statements that a connection keeps."""
_NOT_FOR_THE_SERVER = {
    # Hosts add this one to the URLs they give out.
    "channel_binding",
    # What other programs are told about a pooler.
    "max_cacheable_statement_size",
    "max_cached_statement_lifetime",
    "pgbouncer",
    "prepared_statement_cache_size",
    "prepared_statements",
    "statement_cache_size",
}
"""Parameters of URLs that asyncpg would hand to the server as settings, which would refuse them."""
_POOLED = {"pgbouncer=true", "prepared_statement_cache_size=0", "prepared_statements=false", "statement_cache_size=0"}
"""Each says that nothing may stay prepared."""

logger = logging.getLogger(__name__)


def postgres_engine(dsn: str, statement_timeout: float) -> AsyncEngine:
    """The engine of `postgresql://...`, with all that libpq allows."""
    address, _, text = dsn.partition("?")
    options = [option for option in text.split("&") if option]
    known = [option for option in options if option.partition("=")[0] not in _NOT_FOR_THE_SERVER]
    dsn = f"{address}?{'&'.join(known)}"
    connections = _Connections(dsn, statement_timeout, pooled=not _POOLED.isdisjoint(options))
    engine = create_async_engine(
        "postgresql+asyncpg://",
        isolation_level="READ COMMITTED",
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=_CONNECT_TIMEOUT,
        pool_recycle=1800,
        hide_parameters=True,
    )
    event.listen(engine.sync_engine, "do_connect", connections.connect)
    event.listen(engine.sync_engine, "checkout", _refuse_closed)
    return engine


def _refuse_closed(connection: Any, *_: object) -> None:
    # To ask the server (`pool_pre_ping`) would cost three round trips for each transaction. What was cut only now, or
    # without a word, fails at its BEGIN, and the work is repeated (`retry_transient`).
    if connection.driver_connection.is_closed():
        raise DisconnectionError


class _Connections:
    """Opens connections, and finds out by itself whether there is a pooler."""

    def __init__(self, dsn: str, statement_timeout: float, *, pooled: bool) -> None:
        self._dsn = dsn
        self._statement_timeout = statement_timeout
        self._pooled = pooled

    def connect(self, dialect: Dialect, *_: object) -> Any:
        connection = await_only(self._opened())

        async def opened() -> "asyncpg.Connection[Any]":
            return connection

        kept = {"prepared_statement_cache_size": _KEPT}
        nothing_kept = {"prepared_statement_cache_size": 0, "prepared_statement_name_func": _no_name}
        return dialect.connect(async_creator_fn=opened, **(nothing_kept if self._pooled else kept))

    async def _opened(self) -> "asyncpg.Connection[Any]":
        connection = await self._open()
        try:
            if self._pooled or not await _is_pooled(connection):
                return connection
        except BaseException:
            connection.terminate()
            raise
        logger.info("The database is reached through a connection pooler.")
        self._pooled = True
        await connection.close(timeout=_CONNECT_TIMEOUT)
        return await self._open()

    async def _open(self) -> "asyncpg.Connection[Any]":
        # asyncpg reads the URL itself: unlike SQLAlchemy it knows libpq's parameters (sslmode, several hosts, sockets).
        try:
            return await asyncpg.connect(
                self._dsn,
                timeout=_CONNECT_TIMEOUT,
                command_timeout=self._statement_timeout,
                statement_cache_size=0 if self._pooled else _KEPT,
                server_settings={"application_name": APPLICATION_NAME},
            )
        except ValueError:
            # Not quoted: what cannot be parsed may be a piece of the password.
            raise ConfigError([_FORM]) from None


def _no_name() -> str:
    return ""


async def _is_pooled(connection: "asyncpg.Connection[Any]") -> bool:
    """Whether another process answers than took the connection. Asked without a name, which any pooler lets through."""
    question = await connection.prepare("SELECT pg_backend_pid()", name="", timeout=_CONNECT_TIMEOUT)
    return bool(await question.fetchval(timeout=_CONNECT_TIMEOUT) != connection.get_server_pid())
