"""Databases and worlds for the tests of faults."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.servers.postgres import PostgresServer
from support.worlds.app_world import AppWorld, a_world


@pytest.fixture
def sqlite_url(scratch: Path) -> str:
    return f"sqlite:///{scratch}/pagehand.sqlite3"


@pytest.fixture
async def postgres_url(postgres: PostgresServer) -> AsyncIterator[str]:
    async with postgres.database() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def maybe_server(request: pytest.FixtureRequest) -> PostgresServer | None:
    """None for SQLite."""
    return request.getfixturevalue("postgres") if request.param == "postgres" else None


@pytest.fixture
async def database_url(maybe_server: PostgresServer | None, scratch: Path, sqlite_template: Path) -> AsyncIterator[str]:
    """Either database, with empty tables."""
    if maybe_server is None:
        yield f"sqlite:///{shutil.copy(sqlite_template, scratch)}"
        return
    async with maybe_server.database() as url:
        yield url


@pytest.fixture
async def world(database_url: str) -> AsyncIterator[AppWorld]:
    """A world on either database, with jobs allowed in #partners: a second channel of the app."""
    async with a_world(database_url, PAGEHAND_ALLOW_SHARED_CHANNELS="true") as made:
        yield made
