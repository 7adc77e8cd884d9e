from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.worlds.core_world import CoreWorld, stored
from support.worlds.message_versions import MessageVersions, message_versions
from support.worlds.tutorial_world import TutorialWorld, tutorial_world


@pytest.fixture
async def world(sqlite_template: Path) -> AsyncIterator[CoreWorld]:
    """The use cases and the three loops over a real SQLite database, with fakes for the job API, Slack and time."""
    async with stored(CoreWorld(), sqlite_template) as world:
        yield world


@pytest.fixture
async def message(world: CoreWorld) -> AsyncIterator[MessageVersions]:
    async with message_versions(world) as made:
        yield made


@pytest.fixture
async def pagehand(sqlite_template: Path) -> AsyncIterator[TutorialWorld]:
    """The same with the words that people read."""
    async with tutorial_world(sqlite_template) as world:
        yield world
