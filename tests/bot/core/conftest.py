import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.scratch import IN_MEMORY
from support.worlds.core_world import CoreWorld

from bot.store.store import open_store


@pytest.fixture
async def world(sqlite_template: Path) -> AsyncIterator[CoreWorld]:
    """The use cases and the three loops over a real SQLite database, with fakes for the job API, Slack and time."""
    with TemporaryDirectory(dir=IN_MEMORY) as directory:
        path = shutil.copy(sqlite_template, directory)
        world = CoreWorld()
        world.store = await open_store(f"sqlite:///{path}", clock=world.clock)
        yield world.assemble()
        await world.store.close()
