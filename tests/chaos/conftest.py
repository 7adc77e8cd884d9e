"""Fixtures of the runs with kills: processes that can be killed, and a PostgreSQL server."""

import os
import secrets
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.chaos.process_group import ProcessGroup, open_process_group
from support.scratch import IN_MEMORY


@pytest.fixture
def seed(pytestconfig: pytest.Config) -> int:
    """Seeds the plan of a run, another one each time in the full lane; what the plan meets depends on the machine."""
    full = not pytestconfig.option.markexpr
    return int(os.environ.get("PAGEHAND_CHAOS_SEED") or (secrets.randbelow(1_000_000) if full else 0))


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory for databases and logs."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as directory:
        yield Path(directory)


@pytest.fixture
async def process_group(forked: tuple[str, ...], scratch: Path) -> AsyncIterator[ProcessGroup]:
    """Starts processes."""
    async with open_process_group(forked, scratch) as opened:
        yield opened
