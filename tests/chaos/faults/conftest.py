"""Databases and worlds for the tests of faults."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from chaos.faults.world import World, a_world
from postgres import NoPostgres, PostgresServer, postgres_server

_SHM = Path("/dev/shm")  # noqa: S108 - a directory in memory: these tests write much and need no disk


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for the whole run. No test pulls its plug, so it need not wait for the disk."""
    try:
        with postgres_server(fsync="off", full_page_writes="off") as server:
            yield server
    except NoPostgres as error:
        pytest.skip(str(error))


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory for databases."""
    with tempfile.TemporaryDirectory(dir=_SHM if _SHM.is_dir() else None) as directory:
        yield Path(directory)


@pytest.fixture
def sqlite_url(scratch: Path) -> str:
    return f"sqlite:///{scratch}/pagehand.sqlite3"


@pytest.fixture
async def postgres_url(postgres: PostgresServer) -> AsyncIterator[str]:
    async with postgres.database() as url:
        yield url


@pytest.fixture
async def world(sqlite_url: str) -> AsyncIterator[World]:
    """A world on SQLite."""
    async with a_world(sqlite_url) as made:
        yield made
