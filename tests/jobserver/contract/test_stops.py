"""A cancel, and a kill, at each step of an instruction and its pull request: nothing is lost, repeated or stuck."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.servers.github_server import GitHubServer, github_server
from support.servers.github_server_faults import Fault
from support.servers.github_server_state import TOKEN
from support.worlds.jobserver_process import job_server_process
from support.worlds.jobserver_world import JOB, JobServerWorld, git, make_bare, running, until

pytestmark = pytest.mark.promise("jobs once")

HOLDING_GIT = """#!/bin/sh
held() {{
    echo $$ > '{held}.new' && mv '{held}.new' '{held}'
    while [ -e '{hold}' ]; do sleep 0.02; done
}}
when=never command=
[ -e '{hold}' ] && read -r when command < '{hold}'
case " $* " in
*" "$command" "*) [ $when = before ] && held
    [ $when = after ] && {{ '{git}' "$@"; code=$?; held; exit $code; }} ;;
esac
exec '{git}' "$@"
"""


@dataclass(frozen=True)
class Moment:
    """Before or after git runs this command, a word of its arguments with shell wildcards."""

    command: str
    is_after: bool = False


class HeldGit:
    """`directory` holds a program `git` for the PATH; it blocks at a moment while there is a file `hold`."""

    def __init__(self, directory: Path) -> None:
        self._hold = directory / "hold"
        self._held = directory / "held"
        directory.mkdir()
        program = directory / "git"
        program.write_text(HOLDING_GIT.format(hold=self._hold, held=self._held, git=shutil.which("git")))
        program.chmod(0o755)
        self.path = f"{directory}{os.pathsep}{os.environ['PATH']}"

    def hold(self, moment: Moment) -> None:
        self._held.unlink(missing_ok=True)
        self._hold.write_text(f"{'after' if moment.is_after else 'before'} {moment.command}\n")

    def is_held(self) -> bool:
        return self._held.exists()

    def release(self) -> None:
        self._hold.unlink()

    def kill(self) -> None:
        """Kills the blocked process and its children; it may have ended by itself."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int(self._held.read_text()), signal.SIGKILL)
        self.release()


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
        ended = await world.continued(job["id"], "two")
        assert (ended["status"], ended["prLink"]) == ("completed", f"{world.url}/docs/pulls/1")
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


@pytest.mark.full
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
    settings = {
        "REPOSITORY": str(tmp_path / "r.git"), "EDITOR": "command", "COMMAND": command(tmp_path), "SANDBOX": "none",
        "EGRESS": "open",
    }  # fmt: skip
    links = list[str]()
    environment = os.environ | {"PATH": held.path}
    async with job_server_process(tmp_path / "data", settings, environment=environment) as real:
        for step in steps:
            held.hold(STEPS[step])
            job = await real.create("one")
            await until(lambda: asyncio.to_thread(held.is_held))
            if is_cancelled:
                assert (await real.client.post(f"{JOB}/{job}/cancel", json=ROBIN)).status_code == 200
            real.kill()
            await real.dies()
            await asyncio.to_thread(held.kill)
            await real.start()
            ended = await real.ended(job)
            assert ended["status"] == "completed", step
            assert str(ended["details"]["reason"]).startswith("stopped by Robin") == is_cancelled, step
            is_published = not is_cancelled or step in PUSHED
            assert bool(ended["prLink"]) == is_published, step
            branches = f"--glob=refs/heads/pagehand/{job}*"
            commits = git(tmp_path / "r.git", "log", "--format=%s", branches, "--not", "main")
            assert commits.split() == ["one"] * is_published, f"{step}: an instruction is one commit"
            links += [ended["prLink"]] * is_published
    assert len(set(links)) == len(links), "each job has a pull request of its own"


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


@pytest.fixture
async def github(tmp_path: Path) -> AsyncIterator[GitHubServer]:
    async with github_server(tmp_path / "github", {f"{n}.md": "A colour.\n" for n in range(len(MOMENTS))}) as made:
        yield made


@pytest.mark.full
async def test_a_kill_at_any_moment_leaves_exactly_one_pull_request(github: GitHubServer, tmp_path: Path) -> None:
    """One job per moment, since each takes a start."""
    settings = {"REPOSITORY": github.repository_url, "GITHUB_TOKEN": TOKEN}
    async with job_server_process(tmp_path / "data", settings) as server:
        for number, arm in enumerate(MOMENTS):
            arm(github, server.kill)
            prompt = 'Replace "colour" with "color"'
            job = await server.create(prompt)
            await server.dies()
            await server.start()
            ended = await server.ended(job)
            assert (ended["status"], ended["details"]["pullRequest"]["state"]) == ("completed", "open"), arm.__name__
            assert ended["prLink"] == f"{github.url}/acme/docs/pull/{number + 1}", arm.__name__
            branch = f"pagehand/{job}"
            opened = [record.branch for record in github.repository.pull_requests]
            assert (opened.count(branch), len(opened)) == (1, number + 1), arm.__name__
            commits = github.repository.git.git("log", "--format=%s", branch, "--not", "main").splitlines()
            assert commits == [prompt], arm.__name__
