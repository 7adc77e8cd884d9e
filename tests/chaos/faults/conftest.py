"""Databases and worlds for the tests of faults."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from chaos.faults.world import World, a_world
from postgres import PostgresServer


@pytest.fixture
def sqlite_url(scratch: Path) -> str:
    return f"sqlite:///{scratch}/pagehand.sqlite3"


@pytest.fixture
async def postgres_url(postgres: PostgresServer) -> AsyncIterator[str]:
    async with postgres.database() as url:
        yield url


@pytest.fixture(params=("sqlite", pytest.param("postgres", marks=pytest.mark.postgres)))
def any_url(request: pytest.FixtureRequest) -> str:
    """The test runs on both databases."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
async def world(sqlite_url: str) -> AsyncIterator[World]:
    """A world on SQLite."""
    async with a_world(sqlite_url) as made:
        yield made
