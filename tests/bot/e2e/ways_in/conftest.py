"""People in Slack, the whole bot and a job API, with the settings of a test."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from support.scratch import IN_MEMORY
from support.worlds.ways_in_world import OpenWorld, WaysInWorld, ways_in_world


@pytest.fixture
def scratch(sqlite_template: Path) -> Iterator[Path]:
    """A directory with the database, and for files named in settings."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as directory:
        shutil.copy(sqlite_template, Path(directory) / "pagehand.sqlite3")
        yield Path(directory)


@pytest.fixture
async def open_world(scratch: Path) -> AsyncIterator[OpenWorld]:
    """Opens a world with its own settings, once per test."""
    async with AsyncExitStack() as stack:

        async def opened(*, without: Sequence[str] = (), **settings: str) -> WaysInWorld:
            return await stack.enter_async_context(ways_in_world(scratch, without=without, **settings))

        yield opened


@pytest.fixture
async def world(open_world: OpenWorld) -> WaysInWorld:
    """A world with the default settings."""
    return await open_world()
