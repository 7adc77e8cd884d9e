"""`pagehand jobserver --without-worker` and `pagehand jobworker`, as processes over one PostgreSQL."""

import asyncio
import contextlib
import os
import secrets
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from support.libfaketime import LIBFAKETIME
from support.servers.postgres import PostgresServer
from support.worlds.agent_world import scripted
from support.worlds.hostile_world import needs_bubblewrap
from support.worlds.jobserver_process import PAGEHAND, JobServerProcess, job_server_process
from support.worlds.jobserver_world import JOB, KEY, git, make_bare, until

from bot.jobserver.composition import Role
from bot.jobserver.errors import JobServerError
from bot.jobserver.server import JobServer
from bot.jobserver.settings import PREFIX, JobServerSettings

TOKEN = secrets.token_hex(16)
NOT_OFFERED = "No worker offers builtin for project docs: start pagehand jobworker where that works."
SLOWLY = "Fix the typos slowly"
"""The built-in editor takes ten seconds."""


class Machines:
    """An API process, and workers."""

    def __init__(self, folder: Path, url: str, pagehand: Sequence[str], stack: AsyncExitStack) -> None:
        self.folder, self.url, self.pagehand, self._stack = folder, url, pagehand, stack
        self.environment = dict(os.environ)
        self.repository = make_bare(folder / "manual.git", {"docs/start.md": "# Start\n\nTeh end.\n"})
        self._settings = {
            "REPOSITORY": f"file://{self.repository}", "DATABASE_URL": url, "METRICS_TOKEN": TOKEN, "EDITOR": "builtin",
            "PUBLIC_URL": "https://docs.example",
        }  # fmt: skip

    async def start(self, name: str, *arguments: str, **settings: str) -> JobServerProcess:
        given = {**self._settings, **settings}
        started = job_server_process(self.folder / name, given, self.pagehand, self.environment, arguments)
        return await self._stack.enter_async_context(started)

    async def api(self) -> JobServerProcess:
        return await self.start("api", "jobserver", "--without-worker")

    async def checked(self) -> str:
        """Returns what `--check` prints for an API process."""
        given = {
            **self._settings,
            "API_KEY": KEY,
            "DATA_DIRECTORY": str(self.folder / "checked"),
            "ALLOW_ROOT": "true",
        }
        environment = {**os.environ, **{PREFIX + name: value for name, value in given.items()}}
        command = (*self.pagehand, "jobserver", "--without-worker", "--check")
        process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=asyncio.subprocess.PIPE)
        return (await process.communicate())[0].decode()

    async def worker(self, name: str, **settings: str) -> JobServerProcess:
        return await self.start(name, "jobworker", **settings)


@pytest.fixture
async def machines(postgres: PostgresServer, pagehand: tuple[str, ...], tmp_path: Path) -> AsyncIterator[Machines]:
    async with postgres.empty_database() as url, AsyncExitStack() as stack:
        yield Machines(tmp_path, url, pagehand, stack)


async def problems(api: JobServerProcess) -> list[str]:
    found: list[str] = (await api.client.get("/health")).json()["problems"]
    return found


async def activity(api: JobServerProcess, job: str) -> str | None:
    details = (await api.client.get(f"{JOB}/{job}")).json().get("details") or {}
    shown: str | None = details.get("activity")
    return shown


async def patiently(api: JobServerProcess, job: str) -> str:
    """Returns the job's status at its end, which may come only after the lease of a worker that was killed."""
    for _ in range(2):
        with contextlib.suppress(TimeoutError):
            return str((await api.ended(job))["status"])
    return "active"


@pytest.mark.postgres
@pytest.mark.promise("jobs once")
async def test_a_worker_does_what_an_api_process_accepts(machines: Machines) -> None:
    assert f"note workers        {NOT_OFFERED}\n" in await machines.checked(), "before there are tables"
    api = await machines.api()
    job = await api.create("Fix the typos")
    await until(lambda: problems(api))
    assert await problems(api) == [NOT_OFFERED]
    assert f"note workers        {NOT_OFFERED}\n" in await machines.checked()
    worker = await machines.worker("one")
    ended = await api.ended(job)
    assert (ended["status"], ended["prLink"]) == ("completed", "https://docs.example/docs/pulls/1")
    health = (await api.client.get("/health")).json()
    assert (health["problems"], health["workers"]) == ([], [{"docs": "builtin"}])
    assert "workers" not in await machines.checked()
    assert (await worker.client.get(f"{JOB}/{job}")).status_code == 404, "it has no API"
    assert (await worker.client.get("/metrics")).status_code == 401
    worker.ask_to_stop()
    await worker.dies()
    assert await problems(api)


@pytest.mark.postgres
async def test_a_worker_begins_only_what_works_where_it_is(machines: Machines, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "edits"
    await asyncio.to_thread(program.parent.mkdir)
    await asyncio.to_thread(program.write_text, "#!/bin/sh\necho More. >> docs/start.md\n")
    await asyncio.to_thread(program.chmod, 0o755)
    command = {"EDITOR": "command", "COMMAND": "edits", "SANDBOX": "none", "EGRESS": "open", "SESSION_KEY": "5" * 64}
    api = await machines.start("api", "jobserver", "--without-worker", **command)
    job = await api.create("More")
    words = "No worker offers command without a sandbox for project docs: start pagehand jobworker where that works."
    assert await problems(api) == [words]
    with pytest.raises(AssertionError):  # it ends, and says what is missing
        await machines.worker("without", **command)
    machines.environment["PATH"] = f"{program.parent}:{machines.environment['PATH']}"
    await machines.worker("with", **command)
    assert (await api.ended(job))["status"] == "completed"
    assert not await problems(api)


@pytest.mark.full
@pytest.mark.postgres
@pytest.mark.promise("jobs once")
async def test_a_job_goes_on_elsewhere_when_its_worker_is_stopped_or_killed(machines: Machines) -> None:
    api, one = await machines.api(), await machines.worker("one")
    for end in (JobServerProcess.ask_to_stop, JobServerProcess.kill):
        job = await api.create(SLOWLY)
        await until(partial(activity, api, job))
        two = await machines.worker(f"after {end.__name__}")
        end(one)
        await one.dies()
        assert await patiently(api, job) == "completed"
        commits = git(machines.repository, "log", "--format=%s", f"pagehand/{job}", "--not", "main").split("\n")
        assert [subject for subject in commits if subject] == [SLOWLY]
        one = two


@pytest.mark.full
@pytest.mark.postgres
@pytest.mark.promise("jobs once")
@pytest.mark.skipif(not LIBFAKETIME, reason="left out: libfaketime is not installed")
async def test_a_worker_whose_host_slept_records_nothing_of_what_is_anothers(
    machines: Machines, tmp_path: Path
) -> None:
    """It finds its wall clock two minutes later, and its lease another's. That it pushes nothing is shown elsewhere:
    under libfaketime, its search for keys fails.
    """
    api, clock, forked = await machines.api(), tmp_path / "clock", machines.pagehand
    await asyncio.to_thread(clock.write_text, "+0")
    faked = {"LD_PRELOAD": LIBFAKETIME, "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    machines.environment |= faked | {"FAKETIME_CACHE_DURATION": "1"}
    machines.pagehand = (sys.executable, *PAGEHAND)
    asleep = await machines.worker("asleep")
    job = await api.create(SLOWLY)
    await until(partial(activity, api, job))
    os.kill(asleep.pid, signal.SIGSTOP)
    await asyncio.to_thread(clock.write_text, "+120")
    connection = await asyncpg.connect(machines.url)
    await connection.execute("UPDATE instructions SET claimed_until = '2000-01-01T00:00:00.000000Z'")
    machines.environment, machines.pagehand = dict(os.environ), forked
    await machines.worker("awake")

    async def is_taken() -> bool:
        return bool(await connection.fetchval("SELECT attempts FROM instructions") == 2)

    await until(is_taken)
    os.kill(asleep.pid, signal.SIGCONT)
    assert await patiently(api, job) == "completed"
    await connection.close()
    commits = git(machines.repository, "log", "--format=%s", f"pagehand/{job}", "--not", "main").split("\n")
    assert [subject for subject in commits if subject] == [SLOWLY]


PLANS = """
import os

def turn(agent, text):
    if "HANG" in os.environ:
        agent.call("1", "Reading", kind="read")
        time.sleep(600)
    if "which was accepted" in text:
        Path("docs/start.md").write_text("# Start\\n\\nThe end.\\n")
        agent.say(f"Prompt {len(agent.memory())} of {agent.session_id}.")
        return None
    agent.call("2", "Approve Plan", kind="switch_mode", rawInput={"plan": "- docs/start.md: it says teh"})
    agent.ask("2")
    return "cancelled"
"""


@pytest.mark.full
@pytest.mark.postgres
@pytest.mark.promise("jobs once")
async def test_a_plan_outlives_its_workers_and_the_same_session_carries_it_out(machines: Machines) -> None:
    """One is killed while it plans, one stops when it has planned, and another gets the yes."""
    await asyncio.to_thread(needs_bubblewrap)
    agent = {"EDITOR": "agent", "AGENT": shlex.join(scripted(machines.folder, PLANS).command), "SESSION_KEY": "5" * 64}
    api = await machines.start("api", "jobserver", "--without-worker", **agent)
    one = await machines.worker("one", AGENT_ENVIRONMENT="HANG=1", **agent)
    job = (await api.client.post(JOB, json={"prompt": "Fix it", "mode": "plan"})).json()["id"]
    await until(partial(activity, api, job))
    two = await machines.worker("two", **agent)
    one.kill()
    assert await patiently(api, job) == "completed"
    planned = await api.ended(job)
    assert (planned["prLink"], planned["details"]["proposal"]["text"]) == (None, "- docs/start.md: it says teh")
    assert planned["details"]["proposal"]["pages"] == [{"path": "docs/start.md", "reason": "it says teh"}]
    two.ask_to_stop()
    await two.dies()
    await machines.worker("three", **agent)
    accepted = {"prompt": "Go", "proposal": planned["details"]["proposal"]["id"]}
    (await api.client.post(f"{JOB}/{job}/message", json=accepted)).raise_for_status()
    done = await api.ended(job)
    assert (done["status"], done["details"]["summary"]) == ("completed", "Prompt 2 of session-1.")
    assert git(machines.repository, "show", f"pagehand/{job}:docs/start.md") == "# Start\n\nThe end.\n"


@pytest.mark.full
@pytest.mark.postgres
async def test_a_stop_time_lets_a_worker_finish(machines: Machines) -> None:
    api, worker = await machines.api(), await machines.worker("one", STOP_TIME="60")
    job = await api.create(SLOWLY)
    await until(partial(activity, api, job))
    worker.ask_to_stop()
    await worker.dies()
    assert (await api.client.get(f"{JOB}/{job}")).json()["status"] == "completed"


POSTGRES = "postgresql://pagehand:x@127.0.0.1/pagehand"
REFUSED: list[tuple[Role, dict[str, Any], str]] = [
    (Role.WORKER, {}, "set PAGEHAND_JOBSERVER_DATABASE_URL"),
    (Role.API, {}, "set PAGEHAND_JOBSERVER_DATABASE_URL"),
    (Role.WORKER, {"database_url": POSTGRES}, "project docs is a directory, which other machines lack"),
    (
        Role.WORKER,
        {"database_url": POSTGRES, "repository": "https://host.example/r"},
        "set PAGEHAND_JOBSERVER_PUBLIC_URL",
    ),
]


@pytest.mark.parametrize(("role", "settings", "words"), REFUSED)
async def test_what_machines_cannot_share_is_refused(
    tmp_path: Path, role: Role, settings: dict[str, Any], words: str
) -> None:
    given: dict[str, Any] = {"repository": str(tmp_path), "api_key": KEY, "data_directory": tmp_path / "data"}
    with pytest.raises(JobServerError, match=words):
        await JobServer(JobServerSettings(**(given | settings)), role).start()
    assert not await asyncio.to_thread((tmp_path / "data").exists)


@pytest.mark.postgres
async def test_a_project_that_machines_cannot_share_is_not_served_when_it_is_added(
    machines: Machines, tmp_path: Path
) -> None:
    file = tmp_path / "projects.toml"
    shared = f'[projects.docs]\nrepository = "file://{machines.repository}"\napi_key = "{KEY}"\n'
    await asyncio.to_thread(file.write_text, shared)
    api = await machines.start("api", "jobserver", "--without-worker", "--config", str(file))
    own = f'[projects.site]\nrepository = "{machines.repository}"\napi_key = "{secrets.token_hex(16)}"\n'
    await asyncio.to_thread(file.write_text, shared + own)
    refused = "Project site cannot be served as its settings are now."

    async def is_refused() -> bool:
        return refused in await problems(api)

    await until(is_refused)
    assert await api.create("Fix the typos")
