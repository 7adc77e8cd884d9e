import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.scratch import IN_MEMORY
from support.worlds.core_world import CoreWorld

from bot.store.schema.migration import migrate
from bot.store.store import open_store


@pytest.fixture
async def world() -> AsyncIterator[CoreWorld]:
    """The use cases and the three loops over a real SQLite database, with fakes for the job API, Slack and time."""
    with TemporaryDirectory(dir=IN_MEMORY) as directory:
        url = f"sqlite:///{directory}/pagehand.sqlite3"
        await migrate(url)
        world = CoreWorld()
        world.store = await open_store(url, clock=world.clock)
        yield world.assemble()
        await world.store.close()


@pytest.fixture(scope="module")
def sqlite_template() -> Iterator[Path]:
    """A SQLite database with the tables and nothing in them."""
    with TemporaryDirectory(dir=IN_MEMORY) as directory:
        path = Path(directory) / "template.db"
        asyncio.run(migrate(f"sqlite:///{path}"))
        yield path
