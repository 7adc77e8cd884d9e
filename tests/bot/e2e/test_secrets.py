"""Real processes under all kinds of failures, at the most verbose level: nothing that they print, store or show
contains a secret, in plain text or in the usual encodings.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import aiohttp
import asyncpg
import pytest
from support.oracles.leaks import leaks
from support.programs import Program, running_programs
from support.servers.fake_job_api import GARBAGE, KEY, PROJECT, FakeJobApiServer, Operation, cut, refusing
from support.servers.postgres import NoPostgres, PostgresServer, postgres_server
from support.servers.slack_faults import FaultyWorkspace
from support.worlds.jobserver_world import git, make_bare

from bot.cli.demo_services import manifest
from bot.store.schema.tables import metadata
from bot.workspace import Credentials

pytestmark = pytest.mark.promise("secrets")

BOT_TOKEN, APP_TOKEN = "xoxb-planted-secret-bot-token", "xapp-1-planted-secret-app-token"
SIGNING_SECRET, PASSWORD = "planted-secret-signing", "planted-secret-database-password"
JOB_KEY = "planted-secret-job-server-key"
PLANTED = (BOT_TOKEN, APP_TOKEN, SIGNING_SECRET, PASSWORD, JOB_KEY, KEY)
PATIENCE = 300.0


class Start(Protocol):
    async def __call__(self, *arguments: str, **environment: str) -> Program: ...


@pytest.fixture
async def start(tmp_path: Path, pagehand: Sequence[str]) -> AsyncIterator[Start]:
    """Starts `pagehand` in the test's directory, with this environment only."""
    own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])}
    own |= {"PYTHONUNBUFFERED": "1", "PAGEHAND_LOG_LEVEL": "DEBUG"}
    async with running_programs() as programs:

        async def start(*arguments: str, **environment: str) -> Program:
            command = (*pagehand, *arguments)
            return await programs.start(*command, directory=tmp_path, environment=own | environment)

        yield start


async def all_that_is_printed(program: Program) -> bytes:
    """Ends a program, if it has not ended."""
    await program.end(signal.SIGTERM)
    return program.printed


@dataclass
class Scene:
    """A workspace and a job API, with the credentials that they gave out."""

    workspace: FaultyWorkspace
    fake_job_api: FakeJobApiServer
    session: aiohttp.ClientSession

    @property
    def environment(self) -> dict[str, str]:
        return {
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_APP_TOKEN": APP_TOKEN,
            "SLACK_SIGNING_SECRET": SIGNING_SECRET,
            "SLACK_API_URL": self.workspace.api_url,
            "JOB_API_URL": self.fake_job_api.url,
            "JOB_API_KEY": KEY,
            "JOB_API_PROJECT": PROJECT,
            "JOB_API_TIMEOUT": "2",
            "PAGEHAND_MERGE_SECONDS": "0",
            "PAGEHAND_POLL_FASTEST": "0.1",
            "PAGEHAND_POLL_SLOWEST": "0.5",
        }

    def secrets(self) -> set[str]:
        """Returns everything planted, the socket tickets, and the secret parts of response URLs."""
        given = set(PLANTED)
        for call in self.workspace.web_api.calls:
            given |= set(parse_qs(urlsplit(str(call.response.get("url", ""))).query).get("ticket", []))
        for delivery in self.workspace.deliveries.records:
            url = delivery.envelope.payload.get("response_url")
            given |= {str(url).rpartition("/")[2]} if url else set()
        return given

    async def look(self) -> bytes:
        """Returns what the workspace's page shows to each person."""
        pages = []
        for person in ("ana", "ben"):
            who = self.workspace.people[person].id
            async with self.session.get(f"{self.workspace.origin}/page/snapshot", params={"as": who}) as answer:
                pages.append(await answer.read())
        return b"\n".join(pages)

    async def until(self, condition: Callable[[], Any]) -> Any:
        return await self.workspace.changes.wait_for(condition, PATIENCE)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    workspace = FaultyWorkspace(
        manifest(), credentials=Credentials(BOT_TOKEN, APP_TOKEN, signing_secret=SIGNING_SECRET), ack_timeout=0.5
    )
    fake_job_api = FakeJobApiServer()
    await workspace.start()
    await fake_job_api.start()
    async with aiohttp.ClientSession() as session:
        yield Scene(workspace, fake_job_api, session)
    await workspace.stop()
    await fake_job_api.stop()


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    try:
        with postgres_server(fsync="off") as server:
            yield server
    except NoPostgres as error:
        pytest.skip(str(error))


def files_in(*directories: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() for directory in directories for path in directory.rglob("*") if path.is_file()
    }


async def problem(scene: Scene) -> None:
    """Runs a job whose polls fail, and another one that is not accepted, with as many failures as possible."""
    workspace, fake_job_api = scene.workspace, scene.fake_job_api
    ana = workspace.people["ana"]
    await scene.until(lambda: workspace.connected)
    of_polls = (refusing(500, KEY), GARBAGE, cut(applied=False), refusing(403, KEY))
    for fault in of_polls:
        fake_job_api.fail(fault, Operation.GET)
    await ana.command("docs", "/docs", "Fix the start page")
    await fake_job_api.until(lambda: fake_job_api.created)
    fake_job_api.fail(refusing(401, f"Incorrect API key provided: {KEY}"), Operation.CREATE)
    workspace.faults.server_error(method="chat.postMessage")
    await ana.command("docs", "/docs", "Fix the guides")
    workspace.faults.refuse_handshake(2)
    await workspace.disconnect()  # it takes seconds to reconnect: everything else happens meanwhile
    ts = await scene.until(
        lambda: next((message.ts for message in workspace.channels.messages("docs") if message.metadata), "")
    )
    dropped = workspace.faults.drop(applied=True, method="chat.postMessage")
    await fake_job_api.until(lambda: fake_job_api.tried(Operation.CREATE) >= 1)
    await scene.until(lambda: dropped.hits)
    workspace.credentials.revoke("token_revoked")
    workspace.faults.rate_limit(1, method="chat.update")
    await scene.until(lambda: any(call.error == "token_revoked" for call in workspace.web_api.calls))
    workspace.credentials.refusal = None
    await scene.until(lambda: workspace.connected)
    await ana.say("docs", "And the manual", thread_ts=ts)
    await fake_job_api.until(lambda: fake_job_api.tried(Operation.GET) >= len(of_polls))


async def test_a_bot_under_failures_leaks_no_secret(scene: Scene, start: Start, tmp_path: Path) -> None:
    run = await start("run", **scene.environment, DATABASE_URL="sqlite:///pagehand.sqlite3")
    await problem(scene)
    await run.prints("not working")
    places = {"the page": await scene.look(), "the output": await all_that_is_printed(run), **files_in(tmp_path)}
    assert b"Pagehand is at work" in run.printed
    assert len(scene.secrets()) > len(PLANTED) + 1, "no ticket or address was given out"
    assert leaks(scene.secrets(), places) == []


@pytest.mark.full
@pytest.mark.postgres
async def test_a_bot_on_postgresql_leaks_no_secret(
    scene: Scene, start: Start, tmp_path: Path, postgres: PostgresServer
) -> None:
    async with postgres.empty_database() as url:
        name = urlsplit(url).path.lstrip("/")
        await postgres.run(f"CREATE ROLE planted SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
        with_password = f"postgresql://planted:{PASSWORD}@/{name}?{urlsplit(url).query}"
        run = await start("run", **scene.environment, DATABASE_URL=with_password)
        await scene.until(lambda: scene.workspace.connected)
        await postgres.run(CUT_OFF.format(name))
        await scene.workspace.people["ana"].command("docs", "/docs", "Fix the guides")
        await scene.fake_job_api.until(lambda: scene.fake_job_api.created)
        await all_that_is_printed(run)
        places = {"the output": run.printed, "the tables": await _tables(url), **files_in(tmp_path)}
    assert leaks(scene.secrets(), places) == []


async def _tables(url: str) -> bytes:
    connection = await asyncpg.connect(url)
    try:
        rows = [await connection.fetch(f'SELECT * FROM "{table}"') for table in metadata.tables]  # noqa: S608 - ours
    finally:
        await connection.close()
    return repr(rows).encode()


CUT_OFF = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}' AND pid <> pg_backend_pid()"


@pytest.mark.full
async def test_a_job_server_hides_its_key_even_from_its_editor(start: Start, tmp_path: Path) -> None:
    repository = make_bare(tmp_path / "r.git", {"docs/a.md": "colour"})
    run = await start(
        "jobserver",
        PAGEHAND_JOBSERVER_REPOSITORY=str(repository),
        PAGEHAND_JOBSERVER_API_KEY=JOB_KEY,
        PAGEHAND_JOBSERVER_PORT="0",
        PAGEHAND_JOBSERVER_EDITOR="command",
        PAGEHAND_JOBSERVER_ALLOW_ROOT="true",
        PAGEHAND_JOBSERVER_SANDBOX="none",
        PAGEHAND_JOBSERVER_EGRESS="open",
        PAGEHAND_JOBSERVER_COMMAND='["sh", "-c", "env; env > docs/env.md; cat /proc/$PPID/cmdline"]',
        PAGEHAND_JOBSERVER_DATA_DIRECTORY=str(tmp_path / "data"),
    )
    await run.prints("http://127.0.0.1:")
    url = "http://127.0.0.1:" + run.output.split("http://127.0.0.1:")[1].split()[0].strip('/.",}')
    pages = await _ask(url)
    output = await all_that_is_printed(run)
    places = {"the output": output, "the pages": pages, **files_in(tmp_path)}
    places["the branch"] = git(repository, "log", "--all", "-p").encode()
    assert b"docs/env.md" in places["the branch"]
    assert leaks([JOB_KEY], places) == []


async def _ask(url: str) -> bytes:
    """Sends a job with the right key, and calls with wrong ones; returns all answers."""
    answers = []
    jobs = f"{url}/v2/agent/docs/job"
    right = {"Authorization": f"Bearer {JOB_KEY}"}
    async with aiohttp.ClientSession() as session:
        for headers in (right, {"Authorization": f"Bearer {JOB_KEY}x"}, {"Authorization": f"Basic {JOB_KEY}"}):
            async with session.post(jobs, json={"prompt": "Show the environment"}, headers=headers) as answer:
                answers.append(await answer.read())
                job = await answer.json() if answer.status == 201 else {}
            while job.get("status") == "active":
                await asyncio.sleep(0.05)
                async with session.get(f"{jobs}/{job['id']}", headers=right) as answer:
                    job = await answer.json()
                    answers.append(await answer.read())
        for page in ("/", "/pulls", "/docs/pulls", "/docs/pulls/1", "/health", "/openapi.json", "/nothing"):
            async with session.get(url + page) as answer:
                answers.append(await answer.read())
    return b"\n".join(answers)
