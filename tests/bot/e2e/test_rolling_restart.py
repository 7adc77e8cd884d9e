"""A rolling restart: processes of 1.0.0 and of this version on one PostgreSQL database, while people keep asking."""

import asyncio
import shutil
import signal
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest
from support.programs import Program, Programs, running_programs
from support.servers.fake_job_api import KEY, PROJECT, FakeJobApiServer
from support.servers.postgres import PostgresServer

from bot.slack.rendering.ephemeral_texts import RECORDED
from bot.workspace import WorkspaceServer

pytestmark = [pytest.mark.promise("upgrades"), pytest.mark.full, pytest.mark.postgres]
ROOT = Path(__file__).parents[3]
PATIENCE = 300.0
PACE = 1.2
"""Seconds between two requests: a channel accepts one post a second, which limits the rate."""


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout


@pytest.fixture(scope="module")
def old_version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The content of the wheel of the commit that made 1.0.0; its dependencies are those of this version."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    commit = git("log", "--grep", "^1[.]0[.]0:", "--format=%H", "-1").decode().strip()
    if not commit:
        pytest.skip("the history is too shallow: it does not have the commit that made 1.0.0")
    directory = tmp_path_factory.mktemp("old")
    with tarfile.open(fileobj=BytesIO(git("archive", commit))) as archive:
        archive.extractall(directory / "sources", filter="data")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*build, "-w", directory, directory / "sources"], check=True, cwd=directory)
    (wheel,) = directory.glob("pagehand-1.0.0-*.whl")
    shutil.unpack_archive(wheel, directory / "installed", "zip")
    return directory / "installed"


@dataclass
class Versions:
    """Runs commands of either version with the same settings."""

    directory: Path
    settings: dict[str, str]
    programs: Programs

    async def start(self, version: Path, *arguments: str) -> Program:
        own = {"PATH": "/usr/bin:/bin", "HOME": str(self.directory), "PYTHONPATH": str(version)}
        command = (sys.executable, "-P", "-m", "bot", *arguments)
        return await self.programs.start(*command, directory=self.directory, environment=own | self.settings)

    async def run(self, version: Path, *arguments: str) -> tuple[int, str]:
        program = await self.start(version, *arguments)
        return await program.end(within=PATIENCE), program.output

    async def worker(self, version: Path) -> Program:
        program = await self.start(version, "worker")
        await program.prints("Pagehand is at work", within=PATIENCE)
        return program


@asynccontextmanager
async def a_world(directory: Path, url: str) -> AsyncIterator[tuple[WorkspaceServer, FakeJobApiServer, Versions]]:
    workspace, job_api = WorkspaceServer(ack_timeout=3.0), FakeJobApiServer()
    await job_api.start()
    await workspace.start()
    settings = {
        "SLACK_BOT_TOKEN": workspace.credentials.bot_token,
        "SLACK_APP_TOKEN": workspace.credentials.app_token,
        "SLACK_API_URL": workspace.api_url,
        "JOB_API_URL": job_api.url,
        "JOB_API_KEY": KEY,
        "JOB_API_PROJECT": PROJECT,
        "DATABASE_URL": url,
        "PAGEHAND_POLL_FASTEST": "0.2",
        "PAGEHAND_POLL_SLOWEST": "1",
    }
    try:
        async with running_programs() as programs:
            yield workspace, job_api, Versions(directory, settings, programs)
    finally:
        await workspace.stop()
        await job_api.stop()


async def ask_on(workspace: WorkspaceServer, enough: asyncio.Event) -> list[str]:
    """Asks for one job after the other; returns the acknowledged prompts."""
    acknowledged: list[str] = []
    number = 0
    while not enough.is_set():
        number += 1
        prompt = f"Rewrite page {number}"
        if (await workspace.people["ana"].command("docs", "/docs", prompt)).text == RECORDED:
            acknowledged.append(prompt)
        await asyncio.sleep(PACE)
    return acknowledged


async def test_a_rolling_restart_loses_and_repeats_nothing(
    old_version: Path, postgres: PostgresServer, tmp_path: Path
) -> None:
    async with postgres.empty_database() as url, a_world(tmp_path, url) as (workspace, job_api, versions):
        assert (await versions.run(old_version, "--version"))[1].endswith("1.0.0\n")
        assert (await versions.run(old_version, "migrate"))[0] == 0
        job_api.autopilot(polls=2)
        old = [await versions.worker(old_version) for _ in range(2)]
        enough = asyncio.Event()
        asking = asyncio.create_task(ask_on(workspace, enough))
        await job_api.until(lambda: len(job_api.created) >= 3, PATIENCE)

        assert (await versions.run(ROOT, "migrate"))[0] == 0
        new = []
        for before in old:
            reached = len(job_api.created)
            new.append(await versions.worker(ROOT))
            await job_api.until(lambda reached=reached: len(job_api.created) >= reached + 3, PATIENCE)  # type: ignore[misc]
            assert await before.end(signal.SIGTERM) == 0
        reached = len(job_api.created)
        await job_api.until(lambda: len(job_api.created) >= reached + 3, PATIENCE)
        enough.set()
        acknowledged = await asking
        await job_api.until(lambda: {*acknowledged} <= {each.prompt for each in job_api.created}, PATIENCE)
        await workspace.changes.wait_for(lambda: all_ended(workspace, job_api), PATIENCE)

        assert Counter(each.prompt for each in job_api.created).most_common(1)[0][1] == 1
        keys = Counter(keys_said(workspace))
        assert [key for key, times in keys.items() if times > 1] == []

        code, words = await versions.run(old_version, "worker")
        assert (code, "newer version" in words) == (1, True), "1.0.0 refuses to be started on the new tables"
        assert [await worker.end(signal.SIGTERM) for worker in new] == [0, 0]
        printed = "".join(program.output for program in versions.programs.started)
        assert "Traceback" not in printed
        assert "set aside" not in printed


def keys_said(workspace: WorkspaceServer) -> list[str]:
    """Returns the keys of all messages, with repetitions."""
    roots = workspace.channels.messages("docs")
    said = {message.ts: message for root in roots for message in workspace.channels.thread("docs", root.ts)}
    return [message.metadata["event_payload"]["key"] for message in said.values() if message.metadata]


def all_ended(workspace: WorkspaceServer, job_api: FakeJobApiServer) -> bool:
    """Returns whether the thread of each job has its end notice with the link."""
    said = "\n".join(
        message.text
        for card in workspace.channels.messages("docs")
        for message in workspace.channels.thread("docs", card.ts)[1:]
    )
    links = [job["prLink"] for job in job_api.jobs.values()]
    return all(link and link in said for link in links)
