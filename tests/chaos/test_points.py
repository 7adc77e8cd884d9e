"""The points at which processes are killed are where their names say."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from chaos.crew import Nursery
from chaos.rounds import new_sqlite
from chaos.world import until, world

pytestmark = pytest.mark.chaos
POINT = "listener.record.committed"
PATIENCE = 20.0


async def test_what_nobody_set_off_in_slack_is_no_listener(opened_nursery: Nursery, scratch: Path, seed: int) -> None:
    """A process records something when it starts already; it is the command that it is to be killed by."""
    url = await new_sqlite(scratch, "points")
    async with world(opened_nursery, url, scratch, "Points", idempotent=False, seed=seed) as made:
        life = await made.crew.start("a", f"kill:{POINT}#1")
        assert await until(partial(asyncio.to_thread, _at_work, scratch / f"{life.name}.log"), PATIENCE)
        answer = await made.workspace.person("ana").command("docs", "/docs", "Fix the guides")
        async with asyncio.timeout(PATIENCE):
            await life.ended.wait()
        assert life.ending["at_point"] == POINT
        assert (await made.rows("SELECT count(*) FROM requests"))[0][0] == 1
        assert not answer.ok


def _at_work(log: Path) -> bool:
    """Whether a process has begun all that it does by itself."""
    return log.exists() and "Pagehand is at work" in log.read_text()
