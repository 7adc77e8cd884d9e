"""A cancel, and a kill, at each step of an instruction: nothing is lost, repeated or stuck."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.servers.free_ports import free_port
from support.servers.held_git import HeldGit, Moment
from support.worlds.jobserver_world import JOB, KEY, WITHOUT_TLS, JobServerWorld, git, make_bare, running, until

pytestmark = pytest.mark.promise("jobs once")

PROGRAM = """
import os, pathlib, sys, time
here, prompt = pathlib.Path(sys.argv[1]), sys.stdin.read().splitlines()[-1]
if (here / "hold").exists() and "editing" in (here / "hold").read_text():
    (here / "held.new").write_text(str(os.getpid())); (here / "held.new").rename(here / "held")
    while (here / "hold").exists():
        time.sleep(0.01)
open("notes.md", "a").write(prompt + chr(10))
"""
ROBIN = {"requestedBy": {"name": "Robin"}}
STEPS = {
    "fetching": Moment("fetch"),
    "checking out": Moment("read-tree"),
    "editing": Moment("editing"),
    "committing": Moment("commit-tree"),
    "pushing": Moment("push"),
    "pushed but not told": Moment("push", is_after=True),
    "opening the pull request": Moment("refs/pulls/*/head"),
}
PUSHED = {"pushed but not told", "opening the pull request"}
RISKIEST = ("editing", "pushed but not told")
"""Something happened that the server was not told."""


@pytest.fixture
def held(tmp_path: Path) -> HeldGit:
    make_bare(tmp_path / "r.git", {"docs/start.md": "# Start\n"})
    (tmp_path / "program.py").write_text(PROGRAM)
    return HeldGit(tmp_path / "held")


def command(tmp_path: Path) -> str:
    return json.dumps([sys.executable, str(tmp_path / "program.py"), str(tmp_path / "held")])


@asynccontextmanager
async def server(tmp_path: Path, **settings: Any) -> AsyncIterator[JobServerWorld]:
    values: dict[str, Any] = {"editor": "command", "command": command(tmp_path)}
    async with running(tmp_path / "r.git", tmp_path / "data", **(values | settings)) as world:
        yield world


async def cancel(world: JobServerWorld, job_id: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    answer = await world.client.post(f"{JOB}/{job_id}/cancel", json=body)
    assert answer.status_code == 200, answer.text
    job: dict[str, Any] = answer.json()
    return job


@pytest.mark.parametrize(
    "step", [step if step in RISKIEST else pytest.param(step, marks=pytest.mark.full) for step in STEPS]
)
async def test_a_cancel_at_any_step_ends_the_job_and_a_message_resumes_it(
    tmp_path: Path, held: HeldGit, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held.hold(STEPS[step])
    monkeypatch.setenv("PATH", held.path)
    async with server(tmp_path) as world:
        job = (await world.create("one")).json()
        await until(lambda: asyncio.to_thread(held.is_held))
        assert (await cancel(world, job["id"], ROBIN))["status"] == "active"
        ended = await world.ended(job["id"])
        assert (ended["status"], ended["prLink"]) == ("completed", None)
        assert ended["details"]["reason"].startswith("stopped by Robin")
        assert await cancel(world, job["id"]) == ended, "it has ended: nothing changes"
        assert (f"pagehand/{job['id']}" in world.branches()) == (step in PUSHED)

        held.release()
        await world.message(job["id"], "two")
        ended = await world.ended(job["id"])
        assert (ended["status"], ended["prLink"]) == ("completed", f"{world.url}/pulls/1")
        assert "reason" not in ended["details"] or ended["details"]["reason"] is None
        notes = world.show(f"pagehand/{job['id']}", "notes.md")
        assert notes == ("one\ntwo\n" if step in PUSHED else "two\n")


async def test_cancelling_a_queued_job_ends_it_at_once(tmp_path: Path, held: HeldGit) -> None:
    held.hold(STEPS["editing"])
    async with server(tmp_path, max_concurrent_jobs=1) as world:
        first = (await world.create("one")).json()
        await until(lambda: asyncio.to_thread(held.is_held))
        second = (await world.create("two")).json()
        stopped = await cancel(world, second["id"])
        assert (stopped["status"], stopped["details"]["reason"]) == ("completed", "stopped by request")
        held.release()
        assert (await world.ended(first["id"]))["prLink"]
        assert await world.job(second["id"]) == stopped
        assert world.branches() == {"main", f"pagehand/{first['id']}"}


async def test_a_cancel_keeps_what_an_earlier_instruction_pushed(tmp_path: Path, held: HeldGit) -> None:
    async with server(tmp_path) as world:
        first = await world.done("one")
        held.hold(STEPS["editing"])
        await world.message(first["id"], "two")
        await until(lambda: asyncio.to_thread(held.is_held))
        await cancel(world, first["id"], ROBIN)
        ended = await world.ended(first["id"])
        assert (ended["status"], ended["prLink"]) == ("completed", first["prLink"])
        assert ended["details"]["reason"] == "stopped by Robin"
        assert ended["details"]["pullRequest"] == first["details"]["pullRequest"]
        assert world.show(f"pagehand/{first['id']}", "notes.md") == "one\n"


BAD_CANCELS = [b"[]", b"x", b'{"requestedBy": 7}', b'{"requestedBy": {"name": ""}}', b'{"requestedBy": {"name": 7}}',
               b'{"requestedBy": {"name": "x", "url": "javascript:x"}}']  # fmt: skip


async def test_an_impossible_cancel_is_refused_with_an_explanation(tmp_path: Path, held: HeldGit) -> None:
    async with server(tmp_path) as world:
        job = await world.done("one")
        for body in BAD_CANCELS:
            answer = await world.client.post(f"{JOB}/{job['id']}/cancel", content=body)
            assert (answer.status_code, list(answer.json())) == (400, ["error"])
        assert (await world.client.post(f"{JOB}/nosuchjob/cancel")).status_code == 404
        stranger = await world.client.post(f"{JOB}/{job['id']}/cancel", headers={"Authorization": "Bearer x"})
        assert stranger.status_code == 401
        assert await world.job(job["id"]) == job


SERVE = """
import asyncio
import os
from bot.jobserver.server import JobServer
from bot.jobserver.settings import JobServerSettings
asyncio.run(JobServer(JobServerSettings.from_environment(os.environ)).serve_forever())
"""


class RealServer:
    """A job server in its own process."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path
        self.port = free_port()
        headers = {"Authorization": f"Bearer {KEY}"}
        self.client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", headers=headers, verify=WITHOUT_TLS)

    async def start(self, path: str) -> asyncio.subprocess.Process:
        environment = os.environ | {
            "PATH": path,
            "PAGEHAND_JOBSERVER_REPOSITORY": str(self.tmp_path / "r.git"),
            "PAGEHAND_JOBSERVER_PORT": str(self.port),
            "PAGEHAND_JOBSERVER_API_KEY": KEY,
            "PAGEHAND_JOBSERVER_EDITOR": "command",
            "PAGEHAND_JOBSERVER_ALLOW_ROOT": "true",
            "PAGEHAND_JOBSERVER_SANDBOX": "none",
            "PAGEHAND_JOBSERVER_EGRESS": "open",
            "PAGEHAND_JOBSERVER_COMMAND": command(self.tmp_path),
            "PAGEHAND_JOBSERVER_DATA_DIRECTORY": str(self.tmp_path / "data"),
        }
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", SERVE, env=environment)
        await until(self.answers)
        return process

    async def answers(self) -> bool | None:
        try:
            return (await self.client.get("/health")).is_success
        except httpx.TransportError:
            return None

    async def ended(self, job_id: str) -> dict[str, Any]:
        async def check() -> dict[str, Any] | None:
            seen: dict[str, Any] = (await self.client.get(f"{JOB}/{job_id}")).json()
            return None if seen["status"] == "active" else seen

        return await until(check)


@pytest.mark.parametrize(
    ("steps", "is_cancelled"),
    [
        pytest.param(RISKIEST, True, marks=pytest.mark.full),
        pytest.param(STEPS, False, marks=pytest.mark.full),
    ],
    ids=["cancelled", "goes on"],
)
async def test_a_kill_at_any_step_repeats_nothing_and_forgets_no_cancel(
    tmp_path: Path, held: HeldGit, *, steps: Iterable[str], is_cancelled: bool
) -> None:
    real = RealServer(tmp_path)
    process = await real.start(held.path)
    links = list[str]()
    for step in steps:
        held.hold(STEPS[step])
        job = (await real.client.post(JOB, json={"prompt": "one"})).json()
        await until(lambda: asyncio.to_thread(held.is_held))
        if is_cancelled:
            assert (await real.client.post(f"{JOB}/{job['id']}/cancel", json=ROBIN)).status_code == 200
        process.kill()
        await process.wait()
        await asyncio.to_thread(held.kill)
        process = await real.start(held.path)
        ended = await real.ended(job["id"])
        assert ended["status"] == "completed", step
        assert str(ended["details"]["reason"]).startswith("stopped by Robin") == is_cancelled, step
        is_published = not is_cancelled or step in PUSHED
        assert bool(ended["prLink"]) == is_published, step
        branches = f"--glob=refs/heads/pagehand/{job['id']}*"
        commits = git(tmp_path / "r.git", "log", "--format=%s", branches, "--not", "main")
        assert commits.split() == ["one"] * is_published, f"{step}: an instruction is one commit"
        links += [ended["prLink"]] * is_published
    process.kill()
    await process.wait()
    await real.client.aclose()
    assert len(set(links)) == len(links), "each job has a pull request of its own"
