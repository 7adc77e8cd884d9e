"""A server that is root: each job's programs and files belong to a user of its own, in a real sandbox."""

import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.worlds.hostile_world import findings_of, hostile_world, needs_bubblewrap
from support.worlds.jobserver_world import JobServerWorld

from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.sandbox.choice import open_sandbox
from bot.jobserver.sandbox.interface import Program, Workspace
from bot.jobserver.sandbox.job_users import JobUsers
from bot.jobserver.settings.sandbox import SandboxSettings

pytestmark = [
    pytest.mark.skipif("sys.platform != 'linux'", reason="bubblewrap exists for Linux only"),
    pytest.mark.skipif("os.geteuid() != 0", reason="for a server that is root"),
]
WRITES = """
home = pathlib.Path(os.environ["HOME"])
attempt("remembers", lambda: (home / "note").read_text())
(home / "note").write_text(os.environ["HOME"])
pathlib.Path("docs/start.md").write_text("# Start\\n\\nWritten.\\n")
pathlib.Path("docs/new.md").write_text("# New\\n")
attempt("writes elsewhere", lambda: pathlib.Path("/usr/made").write_text(""))
report()
"""


@pytest.fixture(autouse=True, scope="module")
def users() -> JobUsers:
    needs_bubblewrap()
    sandbox = asyncio.run(open_sandbox(SandboxSettings.model_validate({}), Path("/nonexistent")))
    if not isinstance(sandbox.users, JobUsers):
        pytest.skip(str(sandbox.users))
    return sandbox.users


def home(tmp_path: Path, job: dict[str, Any]) -> Path:
    return tmp_path / "data" / "jobs" / str(job["id"]) / "home"


def owners(folder: Path) -> set[int]:
    """Returns the owners of a folder and its contents."""
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


async def follow_up(world: JobServerWorld, job: dict[str, Any]) -> dict[str, Any]:
    assert (await world.message(str(job["id"]), "more")).is_success
    return await world.ended(str(job["id"]))


async def test_each_job_has_its_own_user_permanently(tmp_path: Path, users: JobUsers) -> None:
    """What it wrote is proposed; its follow-up finds what was kept."""
    async with hostile_world(tmp_path, WRITES) as world:
        left, right = await asyncio.gather(world.done("left"), world.done("right"))
        of_left, of_right = (owners(home(tmp_path, job)) for job in (left, right))
        assert len(of_left) == len(of_right) == 1
        (one,), (other,) = of_left, of_right
        assert one != other
        assert users.has(one)
        assert users.has(other)
        assert home(tmp_path, left).stat().st_mode & 0o077 == 0
        assert findings_of(world, left) == {"remembers": "FileNotFoundError", "writes elsewhere": "OSError"}
        assert world.show(f"pagehand/{left['id']}", "docs/start.md") == "# Start\n\nWritten.\n"
        again = await follow_up(world, left)
        assert findings_of(world, again)["remembers"] == "/workspace/home"
        assert owners(home(tmp_path, left)) == of_left


async def test_files_left_by_root_become_the_jobs_own(tmp_path: Path, users: JobUsers) -> None:
    """As after an update; a home that is a symlink takes nothing along."""
    async with hostile_world(tmp_path, WRITES) as world:
        job = await world.done("go")
        elsewhere = tmp_path / "elsewhere"
        elsewhere.write_text("the server's")
        (home(tmp_path, job) / "link").symlink_to(elsewhere)
        for path in (home(tmp_path, job), *home(tmp_path, job).rglob("*")):
            os.chown(path, 0, 0, follow_symlinks=False)
        again = await follow_up(world, job)
        assert findings_of(world, again)["remembers"] == "/workspace/home"
        (owner,) = owners(home(tmp_path, job))
        assert users.has(owner)
        assert elsewhere.stat().st_uid == 0


def started(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    """Starts a program in a sandbox, in folders that belong to no job."""
    workspace = Workspace(tmp_path / "copy", tmp_path / "home")
    for folder in (workspace.copy, workspace.home):
        folder.mkdir()
    sandbox = asyncio.run(open_sandbox(SandboxSettings.model_validate({}), tmp_path / "data"))
    program = sandbox.prepare(Program(arguments), workspace)
    return subprocess.Popen(
        program.arguments,
        cwd=program.directory,
        env=dict(program.environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def users_of_processes(name: str) -> set[str]:
    """Returns the real, effective, saved and file system user ids of all processes with this name."""
    texts = (path.read_text() for path in Path("/proc").glob("[0-9]*/status"))
    lines = (text.splitlines() for text in texts if text.startswith(f"Name:\t{name}\n"))
    return {line.partition("\t")[2] for text in lines for line in text if line.startswith("Uid:")}


def test_a_jobs_processes_run_as_its_user(tmp_path: Path, users: JobUsers) -> None:
    """As the kernel sees them from outside: their signals reach no other user's processes."""
    name = f"ph{tmp_path.stat().st_ino}"[:15]
    program = tmp_path / name
    program.write_bytes(Path("/bin/cat").read_bytes())
    program.chmod(0o755)
    with started(tmp_path, str(program)) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        print("ready", file=running.stdin, flush=True)
        assert running.stdout.readline() == "ready\n"
        assert users_of_processes(name) == {"\t".join([str(users.first)] * 4)}
        running.stdin.close()


def test_a_program_below_root_runs_if_others_may_read_it(tmp_path: Path) -> None:
    """Its location does not matter: it is mounted where the job's user has access."""
    closed = tmp_path / "as-in-root"
    closed.mkdir(mode=0o700)
    program = closed / "hello"
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    with started(tmp_path, str(program)) as running:
        assert running.communicate()[0] == "hello\n"


def test_a_program_only_root_can_read_is_reported_as_unreachable(tmp_path: Path) -> None:
    program = tmp_path / "hello"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    with pytest.raises(EditError, match=r"only its owner can read .*/hello, and each job runs as another user"):
        started(tmp_path, str(program))


def test_a_folder_only_root_can_read_is_refused_at_start(tmp_path: Path) -> None:
    closed = tmp_path / "for-programs"
    closed.mkdir(mode=0o700)
    settings = SandboxSettings.model_validate({"sandbox_folders": (closed,)})
    with pytest.raises(JobServerError, match="which only its owner can read"):
        asyncio.run(open_sandbox(settings, tmp_path / "data"))
