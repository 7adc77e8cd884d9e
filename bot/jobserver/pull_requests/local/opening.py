"""Puts the keeper of local pull requests together."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from bot.jobserver.pull_requests.local.contents import ContentsReader
from bot.jobserver.pull_requests.local.history import History
from bot.jobserver.pull_requests.local.local_pull_requests import LocalPullRequests
from bot.jobserver.pull_requests.local.mirror import Mirror
from bot.jobserver.pull_requests.local.table import STEPS, PullRequestTable
from bot.jobserver.repository.git import Git
from bot.jobserver.store.database import Database


@asynccontextmanager
async def open_local_pull_requests(
    git: Git, mirror: Mirror, database: Path, *, base: str, public_url: str, now: Callable[[], datetime]
) -> AsyncIterator[LocalPullRequests]:
    """Opens the database, and closes it at the end."""
    async with Database(database, STEPS) as opened:
        table = PullRequestTable(opened, now=now)
        reader = ContentsReader(git, mirror.directory)
        yield LocalPullRequests(table, History(git, mirror), reader, base=base, public_url=public_url)
