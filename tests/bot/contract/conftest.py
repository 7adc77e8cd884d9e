"""Fixtures of the store's contract: every test that uses one of them runs on SQLite and on PostgreSQL."""

import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from support.databases import engine_for
from support.fakes.ports import FakeClock
from support.servers.postgres import PostgresServer
from support.worlds.doctor_world import note
from support.worlds.store_world import Opener, Sql, StoreWorld

from bot.domain.findings import LastTime
from bot.queue.errors import StoreTimings
from bot.store.store import open_store


@pytest.fixture
async def database(server: PostgresServer | None, scratch: Path, sqlite_template: Path) -> AsyncIterator[str]:
    """The URL of a database with empty tables."""
    if server is None:
        shutil.copy(sqlite_template, scratch / "pagehand.db")
        yield f"sqlite:///{scratch}/pagehand.db"
        return
    async with server.database() as url:
        yield url


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def another_store(database: str, clock: FakeClock) -> AsyncIterator[Opener]:
    """Opens one more store on the test's database, as another process would."""
    opened: list[StoreWorld] = []

    async def another(**options: float) -> StoreWorld:
        opened.append(StoreWorld(await open_store(database, clock=clock, timings=StoreTimings(**options))))
        return opened[-1]

    yield another
    for store in opened:
        await store.close()


@pytest.fixture
async def store(another_store: Opener) -> StoreWorld:
    """A store whose time is the fixture `clock`."""
    return await another_store()


@pytest.fixture
async def stores(another_store: Opener) -> Sequence[StoreWorld]:
    """As three processes would have them."""
    return [await another_store() for _ in range(3)]


@pytest.fixture
async def sql(database: str) -> AsyncIterator[Sql]:
    """Runs SQL in the test's database, without the store."""
    engine = engine_for(database)

    async def run(statement: str, **values: object) -> Sequence[tuple[Any, ...]]:
        async with engine.begin() as connection:
            result = await connection.execute(text(statement), values)
            return [tuple(row) for row in result] if result.returns_rows else []

    yield run
    await engine.dispose()


@pytest.fixture
async def used(database: str) -> str:
    """A database with all kinds of events, and a backup."""
    await note(database, LastTime.COMMAND, LastTime.EVENT, LastTime.CLICK)
    return database
