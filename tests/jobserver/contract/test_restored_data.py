"""A copy of the job server's data directory is a backup: a server continues from it."""

import asyncio
import shutil
from pathlib import Path

import pytest
from support.worlds.jobserver_world import git, make_bare, running

pytestmark = pytest.mark.promise("job server's data")

PAGES = {"docs/start.md": "# Start\n\nA colour and a flavour.\n"}


async def test_a_server_continues_from_a_copy_of_its_data(tmp_path: Path) -> None:
    repository, data = make_bare(tmp_path / "manual.git", PAGES), tmp_path / "data"
    async with running(repository, data) as world:
        job = await world.done('Replace "colour" with "color"')
    await asyncio.to_thread(shutil.copytree, data, tmp_path / "restored")
    await asyncio.to_thread(shutil.rmtree, data)
    async with running(repository, tmp_path / "restored") as world:
        assert (await world.job(job["id"]))["status"] == "completed"
        told = await world.message(job["id"], 'Replace "flavour" with "flavor"')
        assert told.status_code == 200
        ended = await world.ended(job["id"])
        link = ended["prLink"].replace(ended["prLink"].split("/pulls/")[0], world.url)
        assert (await world.press(link, "merge")).status_code == 303
    assert "A color and a flavor." in git(repository, "show", "main:docs/start.md")
