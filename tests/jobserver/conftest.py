from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.servers.postgres import JOB_SERVER, PostgresServer
from support.worlds.jobserver_world import jobs_in


@pytest.fixture
async def jobs_database(server: PostgresServer | None, scratch: Path) -> AsyncIterator[str]:
    """The URL of a database with the job server's empty tables."""
    if server is None:
        yield jobs_in(scratch)
        return
    async with server.database(JOB_SERVER) as url:
        yield url
