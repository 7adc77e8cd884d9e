"""Puts the keeper of local pull requests together."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

from bot.jobserver.pull_requests.local.contents import ContentsReader
from bot.jobserver.pull_requests.local.history import History
from bot.jobserver.pull_requests.local.local_pull_requests import LocalPullRequests
from bot.jobserver.pull_requests.local.mirror import Mirror
from bot.jobserver.pull_requests.local.table import STEPS, PullRequestTable
from bot.jobserver.repository.base_branch import BaseBranch
from bot.jobserver.store.database import Database
from bot.runtime.tasks import BackgroundTasks

logger = logging.getLogger(__name__)
_MAX_PAUSE_S = 60.0


@asynccontextmanager
async def open_local_pull_requests(
    mirror: Mirror,
    database: Path,
    *,
    base: BaseBranch,
    public_url: str,
    now: Callable[[], datetime],
    keep_ended: timedelta,
) -> AsyncIterator[LocalPullRequests]:
    """Opens the database, and closes it at the end; meanwhile what ended `keep_ended` ago is forgotten."""
    async with Database(database, STEPS) as opened:
        table = PullRequestTable(opened, now=now)
        kept = LocalPullRequests(table, History(mirror), ContentsReader(mirror), base=base, public_url=public_url)
        forgetting = BackgroundTasks()
        forgetting.spawn(_keep_forgetting(kept, keep_ended), name="forgetting pull requests")
        try:
            yield kept
        finally:
            await forgetting.cancel()


async def _keep_forgetting(pull_requests: LocalPullRequests, age: timedelta) -> None:
    pause = min(_MAX_PAUSE_S, max(0.1, age.total_seconds() / 10))
    while True:
        try:
            while await pull_requests.delete_ended(age):
                pass
        except Exception:
            logger.exception("old pull requests could not be forgotten; trying again")
        await asyncio.sleep(pause)
