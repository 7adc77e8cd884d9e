"""What the runs with kills need: processes that can be killed, and a PostgreSQL server."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from chaos.crew import Nursery, nursery
from chaos.rounds import IN_MEMORY
from postgres import NoPostgres, PostgresServer, postgres_server


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
    """A directory for databases and logs."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as directory:
        yield Path(directory)


@pytest.fixture
async def opened_nursery(scratch: Path) -> AsyncIterator[Nursery]:
    """Where processes are started."""
    async with nursery(scratch) as opened:
        yield opened
