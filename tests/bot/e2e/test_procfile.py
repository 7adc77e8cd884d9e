"""The Procfile on a platform: a checkout, an environment with requirements.txt alone, a process for each line, and a
PostgreSQL for all of them.
"""

import json
import re
import shlex
import shutil
import signal
import venv
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import aiohttp
import pytest
from support.programs import Program, Programs, running_programs
from support.servers.fake_job_api import KEY, PROJECT, FakeJobApiServer
from support.servers.free_ports import free_port
from support.servers.postgres import PostgresServer
from support.worlds.card_menu import menu_choice

from bot.slack.rendering.ephemeral_texts import RECORDED
from bot.workspace import Credentials, WorkspaceServer
from bot.workspace.model.app_config import AppConfig

ROOT = Path(__file__).parents[3]
LINES = dict(line.split(": ", 1) for line in (ROOT / "Procfile").read_text(encoding="utf-8").splitlines())
SECRET = "planted-signing-secret"
PATIENCE = 300.0
STOP_WITHIN = 10.0


@dataclass(frozen=True)
class Checkout:
    """The sources, and an environment in which they are not installed."""

    sources: Path
    environment: Path


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The packages that requirements.txt names are shared with the test's own environment, and no others."""
    directory = tmp_path_factory.mktemp("deployed")
    sources = directory / "app"
    shutil.copytree(ROOT / "bot", sources / "bot", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Procfile", "requirements.txt", "manifest.yml"):
        shutil.copy(ROOT / name, sources)
    venv.create(directory / "venv", symlinks=True)
    (packages,) = (directory / "venv" / "lib").glob("python*/site-packages")
    requirements = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    for name in re.findall(r"^([a-z0-9._-]+)[\[=]", requirements, re.MULTILINE):
        files = distribution(name).files or ()
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(distribution(name).locate_file(top))))
    return Checkout(sources, directory / "venv")


@dataclass
class Platform:
    """Runs the Procfile's lines."""

    checkout: Checkout
    environment: dict[str, str]
    programs: Programs

    async def start(self, line: str, **environment: str) -> Program:
        own = {"PATH": f"{self.checkout.environment}/bin:/usr/bin:/bin", "DYNO": f"{line}.1"}
        given = own | self.environment | environment
        return await self.programs.start(*shlex.split(LINES[line]), directory=self.checkout.sources, environment=given)


@asynccontextmanager
async def a_world(
    checkout: Checkout, database_url: str, port: int
) -> AsyncIterator[tuple[WorkspaceServer, FakeJobApiServer, Platform]]:
    url = f"http://127.0.0.1:{port}/slack/events"
    workspace = WorkspaceServer(
        AppConfig(request_url=url, interactivity_url=url),
        credentials=Credentials(signing_secret=SECRET),
        ack_timeout=1.0,
    )
    fake_job_api = FakeJobApiServer()
    settings = {
        "SLACK_BOT_TOKEN": workspace.credentials.bot_token,
        "SLACK_SIGNING_SECRET": SECRET,
        "JOB_API_KEY": KEY,
        "JOB_API_PROJECT": PROJECT,
        "JOB_API_TIMEOUT": "5",
        "DATABASE_URL": database_url,
        "PAGEHAND_MERGE_SECONDS": "0",
        "PAGEHAND_POLL_FASTEST": "0.2",
        "PAGEHAND_POLL_SLOWEST": "1",
    }
    await fake_job_api.start()
    await workspace.start()
    addresses = {"SLACK_API_URL": workspace.api_url, "JOB_API_URL": fake_job_api.url}
    try:
        async with running_programs() as programs:
            yield workspace, fake_job_api, Platform(checkout, settings | addresses, programs)
    finally:
        await workspace.stop()
        await fake_job_api.stop()


@pytest.mark.full
@pytest.mark.postgres
async def test_every_line_works(checkout: Checkout, postgres: PostgresServer) -> None:
    assert set(LINES) == {"release", "web", "worker"}
    web_port, worker_port = free_port(), free_port()
    async with postgres.empty_database() as database_url, a_world(checkout, database_url, web_port) as world:
        workspace, fake_job_api, platform = world
        release = await platform.start("release")
        assert await release.end() == 0, release.output

        web = await platform.start("web", PORT=str(web_port))
        worker = await platform.start("worker", PAGEHAND_HEALTH_PORT=str(worker_port))
        for process in (web, worker):
            await process.prints("Pagehand is at work")
        challenge = {"type": "url_verification", "challenge": "c0ffee"}
        assert "c0ffee" in (await workspace.deliveries.request("events_api", challenge)).payload.values()
        assert await _health(web_port, "/health/ready") == (200, {"recording"})
        assert await _health(web_port, "/health") == (200, {"recording", "set-up"})
        assert await _health(worker_port, "/health") == (
            200,
            {
                "recording",
                "set-up",
                "request preparer",
                "request sender",
                "job poller",
                "pull request poller",
                "outbox",
                "home publisher",
                "history reader",
                "file uploader",
                "job API of docs",
            },
        )

        ana, ben = workspace.people["ana"], workspace.people["ben"]
        prompt = "Rewrite the guides. " * 60
        assert (await ana.command("docs", "/docs", prompt)).text == RECORDED
        ts = await workspace.changes.wait_for(
            lambda: next((m.ts for m in workspace.channels.messages("docs")), ""), PATIENCE
        )
        await workspace.changes.wait_for(lambda: len(workspace.channels.thread("docs", ts)) > 1, PATIENCE)
        job = fake_job_api.job_of(prompt.strip())
        reply = await ben.say("docs", "And the manual", thread_ts=ts)
        await workspace.changes.wait_for(lambda: list(reply.reactions) == ["white_check_mark"], PATIENCE)
        assert fake_job_api.follow_ups(job) == ["And the manual"]
        choice = menu_choice(workspace.channels.thread("docs", ts)[0], "Show the whole request")
        assert (await ben.press("docs", ts, **choice)).ok  # only `web` knows the answer's address
        await workspace.changes.wait_for(lambda: any(prompt[:200] in m.text for m in ben.ephemerals("docs")), PATIENCE)
        fake_job_api.show(job, "completed", "https://git.example/docs/pull/1")
        await workspace.changes.wait_for(lambda: "pull/1" in workspace.channels.thread("docs", ts)[-1].text, PATIENCE)

        assert [await process.end(signal.SIGTERM, within=STOP_WITHIN) for process in (web, worker)] == [0, 0]
        keys = [m.metadata["event_payload"]["key"] for m in workspace.channels.thread("docs", ts) if m.metadata]
        assert len(keys) == len(set(keys))
        printed = "".join(program.output for program in platform.programs.started)
        assert "Traceback" not in printed
        assert not [secret for secret in (SECRET, KEY, workspace.credentials.bot_token) if secret in printed]


async def _health(port: int, page: str) -> tuple[int, set[str]]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{page}") as answer:
        return answer.status, set(json.loads(await answer.text())["parts"])
