"""A kill -9 between push, rows and pull request: after a restart there is one pull request, and nothing unproposed."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.servers.free_ports import free_port
from support.servers.github_server import GitHubServer, github_server
from support.servers.github_server_faults import Fault
from support.servers.github_server_state import TOKEN
from support.worlds.jobserver_world import JOB, KEY, WITHOUT_TLS, until

SERVE = """
import asyncio
import os
from bot.jobserver.server import JobServer
from bot.jobserver.settings import JobServerSettings
asyncio.run(JobServer(JobServerSettings.from_environment(os.environ)).serve_forever())
"""
PULLS = "/repos/acme/docs/pulls"
Arm = Callable[[GitHubServer, Callable[[], object]], None]


def _before_the_push(server: GitHubServer, kill: Callable[[], object]) -> None:
    server.before_push = _once(server, kill)


def _after_the_push(server: GitHubServer, kill: Callable[[], object]) -> None:
    server.after_push = _once(server, kill)


def _once(server: GitHubServer, kill: Callable[[], object]) -> Callable[[], object]:
    def kill_and_forget() -> None:
        server.before_push = server.after_push = lambda: None
        kill()

    return kill_and_forget


def _as_it_is_looked_for(server: GitHubServer, kill: Callable[[], object]) -> None:
    server.faults.arm("GET", PULLS, Fault(502, happens=kill))


def _as_it_is_asked_for(server: GitHubServer, kill: Callable[[], object]) -> None:
    server.faults.arm("POST", PULLS, Fault(502, happens=kill))


def _once_it_is_open(server: GitHubServer, kill: Callable[[], object]) -> None:
    server.faults.arm("POST", PULLS, Fault(502, applied=True, happens=kill))


MOMENTS: tuple[Arm, ...] = (
    _before_the_push,
    _after_the_push,
    _as_it_is_looked_for,
    _as_it_is_asked_for,
    _once_it_is_open,
)
RISKIEST = (_after_the_push, _once_it_is_open)
"""Something happened at GitHub that the server was not told."""


class KilledServer:
    """A job server in its own process, with its pull requests at GitHub."""

    def __init__(self, github: GitHubServer, directory: Path) -> None:
        self._settings = {
            "REPOSITORY": github.repository_url,
            "GITHUB_TOKEN": TOKEN,
            "PORT": str(free_port()),
            "API_KEY": KEY,
            "DATA_DIRECTORY": str(directory / "data"),
        }
        url, headers = f"http://127.0.0.1:{self._settings['PORT']}", {"Authorization": f"Bearer {KEY}"}
        self.client = httpx.AsyncClient(base_url=url, headers=headers, verify=WITHOUT_TLS)
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        environment = os.environ | {f"PAGEHAND_JOBSERVER_{name}": value for name, value in self._settings.items()}
        self.process = await asyncio.create_subprocess_exec(sys.executable, "-c", SERVE, env=environment)
        await until(self._answers)

    async def _answers(self) -> bool | None:
        try:
            return (await self.client.get("/health")).is_success
        except httpx.TransportError:
            return None

    def kill(self) -> None:
        assert self.process is not None
        if self.process.returncode is None:
            self.process.kill()

    async def dies(self) -> None:
        assert self.process is not None
        async with asyncio.timeout(30):
            await self.process.wait()

    async def ended(self, job_id: str) -> dict[str, Any]:
        async def check() -> dict[str, Any] | None:
            seen: dict[str, Any] = (await self.client.get(f"{JOB}/{job_id}")).json()
            return None if seen["status"] == "active" else seen

        return await until(check)


@pytest.fixture
async def github(tmp_path: Path) -> AsyncIterator[GitHubServer]:
    async with github_server(tmp_path / "github", {f"{n}.md": "A colour.\n" for n in range(len(MOMENTS))}) as made:
        yield made


@pytest.mark.parametrize(
    "moments", [RISKIEST, pytest.param(MOMENTS, marks=pytest.mark.full)], ids=["riskiest moments", "every moment"]
)
async def test_a_kill_at_any_moment_leaves_exactly_one_pull_request(
    github: GitHubServer, tmp_path: Path, moments: tuple[Arm, ...]
) -> None:
    """One job per moment, since each takes a start."""
    server = KilledServer(github, tmp_path)
    try:
        await server.start()
        for number, arm in enumerate(moments):
            arm(github, server.kill)
            prompt = 'Replace "colour" with "color"'
            job = (await server.client.post(JOB, json={"prompt": prompt})).raise_for_status().json()
            await server.dies()
            await server.start()
            ended = await server.ended(job["id"])
            assert (ended["status"], ended["details"]["pullRequest"]["state"]) == ("completed", "open"), arm.__name__
            assert ended["prLink"] == f"{github.url}/acme/docs/pull/{number + 1}", arm.__name__
            branch = f"pagehand/{job['id']}"
            opened = [record.branch for record in github.repository.pull_requests]
            assert (opened.count(branch), len(opened)) == (1, number + 1), arm.__name__
            commits = github.repository.git.git("log", "--format=%s", branch, "--not", "main").splitlines()
            assert commits == [prompt], arm.__name__
    finally:
        server.kill()
        await server.dies()
        await server.client.aclose()
