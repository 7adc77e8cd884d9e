from collections.abc import AsyncIterator
from tempfile import TemporaryDirectory

import pytest
from support.scratch import IN_MEMORY
from support.worlds.tutorial_world import TutorialWorld

from bot.store.schema.migration import migrate
from bot.store.store import open_store


@pytest.fixture
async def pagehand() -> AsyncIterator[TutorialWorld]:
    """Pagehand in one channel with Ana, over a database of its own."""
    with TemporaryDirectory(dir=IN_MEMORY) as directory:
        url = f"sqlite:///{directory}/pagehand.sqlite3"
        await migrate(url)
        world = TutorialWorld()
        world.store = await open_store(url, clock=world.clock)
        yield world.open()
        await world.close()
        await world.store.close()
