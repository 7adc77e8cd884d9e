from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.worlds.tutorial_world import TutorialWorld, tutorial_world


@pytest.fixture
async def pagehand(sqlite_template: Path) -> AsyncIterator[TutorialWorld]:
    """Pagehand in one channel with Ana, over its own database."""
    async with tutorial_world(sqlite_template) as world:
        yield world
