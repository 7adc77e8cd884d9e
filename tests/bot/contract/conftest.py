"""Fixtures of the store's contract: every test that takes one of them runs on SQLite and on PostgreSQL."""

import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from support.fakes.ports import FakeClock
from support.servers.postgres import NoPostgres, PostgresServer, postgres_server
from support.worlds.store_world import Opener, Sql

from bot.ports.transaction import Store
from bot.store.database.engine import engine_for
from bot.store.database.timings import StoreTimings
from bot.store.store import open_store


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for the whole run. No test here pulls its plug, so it need not wait for the disk."""
    try:
        with postgres_server(fsync="off", full_page_writes="off") as server:
            yield server
    except NoPostgres as error:
        pytest.skip(str(error))


@pytest.fixture(params=("sqlite", pytest.param("postgres", marks=pytest.mark.postgres)))
def server(request: pytest.FixtureRequest) -> PostgresServer | None:
    """The server that the test's database is on; None for SQLite."""
    return request.getfixturevalue("postgres") if request.param == "postgres" else None


@pytest.fixture
async def empty_database(server: PostgresServer | None, tmp_path: Path) -> AsyncIterator[str]:
    """The URL of a database without tables."""
    if server is None:
        yield f"sqlite:///{tmp_path}/empty.db"
        return
    async with server.empty_database() as url:
        yield url


@pytest.fixture
async def database(server: PostgresServer | None, tmp_path: Path, sqlite_template: Path) -> AsyncIterator[str]:
    """The URL of a database with the tables and nothing in them."""
    if server is None:
        shutil.copy(sqlite_template, tmp_path / "pagehand.db")
        yield f"sqlite:///{tmp_path}/pagehand.db"
        return
    async with server.database() as url:
        yield url


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def another_store(database: str, clock: FakeClock) -> AsyncIterator[Opener]:
    """Opens one more store on the test's database, as another process would."""
    opened: list[Store] = []

    async def another(**options: float) -> Store:
        opened.append(await open_store(database, clock=clock, timings=StoreTimings(**options)))
        return opened[-1]

    yield another
    for store in opened:
        await store.close()


@pytest.fixture
async def store(another_store: Opener) -> Store:
    """A store whose time is the fixture `clock`."""
    return await another_store()


@pytest.fixture
async def sql(database: str) -> AsyncIterator[Sql]:
    """Runs SQL in the test's database, past the store."""
    engine = engine_for(database)

    async def run(statement: str, **values: object) -> Sequence[tuple[Any, ...]]:
        async with engine.begin() as connection:
            result = await connection.execute(text(statement), values)
            return [tuple(row) for row in result] if result.returns_rows else []

    yield run
    await engine.dispose()
