from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from core_world import World

from bot.store.schema import migrate
from bot.store.store import open_store

_SHM = Path("/dev/shm")  # noqa: S108 - a directory in memory: these tests write much and need no disk
IN_MEMORY = _SHM if _SHM.is_dir() else None


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """The use cases and the three loops over a real SQLite database, with fakes for the job API, Slack and time."""
    with TemporaryDirectory(dir=IN_MEMORY) as directory:
        url = f"sqlite:///{directory}/pagehand.sqlite3"
        await migrate(url)
        world = World()
        world.store = await open_store(url, clock=world.clock)
        yield world.assemble()
        await world.store.close()
