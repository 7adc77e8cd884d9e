import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.scratch import IN_MEMORY
from support.worlds.tutorial_world import TutorialWorld

from bot.store.store import open_store


@pytest.fixture
async def pagehand(sqlite_template: Path) -> AsyncIterator[TutorialWorld]:
    """Pagehand in one channel with Ana, over its own database."""
    with TemporaryDirectory(dir=IN_MEMORY) as directory:
        path = shutil.copy(sqlite_template, directory)
        world = TutorialWorld()
        world.store = await open_store(f"sqlite:///{path}", clock=world.clock)
        yield world.open()
        await world.close()
        await world.store.close()
