"""A real `pagehand jobserver` beside a hostile program: what its process reveals, and what a kill leaves."""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.worlds.hostile_world import HEADER, PAGES, needs_bubblewrap, processes_naming
from support.worlds.jobserver_process import PAGEHAND, JobServerProcess, job_server_process
from support.worlds.jobserver_world import KEY, git, make_bare, running, until

pytestmark = pytest.mark.skipif("sys.platform != 'linux'", reason="the sandbox is for Linux")
NOBODY = 65534
ROOT = Path(__file__).parents[3]


@dataclass
class Person:
    """The user that the server runs as: the test's own, or an ordinary one."""

    prefix: tuple[str, ...]
    python: str
    search_path: str


def ordinary_person() -> Person:
    """Returns the test's user, or if that is root, nobody with the system's Python, if that has the same version."""
    if os.geteuid():
        return Person((), sys.executable, os.pathsep.join([str(ROOT)]))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    system = Path(f"/usr/bin/python{version}")
    packages = next(Path(folder) for folder in sys.path if (Path(folder) / "pydantic").is_dir())
    if not system.exists() or shutil.which("setpriv") is None or not _all_may_enter(packages):
        pytest.skip(f"as root this needs setpriv, {system}, and packages that everybody can read")
    prefix = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    return Person(prefix, str(system), os.pathsep.join([str(ROOT), str(packages)]))


def _all_may_enter(folder: Path) -> bool:
    return all(each.stat().st_mode & 0o001 for each in (folder, *folder.parents))


@pytest.fixture
def directory() -> Iterator[Path]:
    """A folder that an ordinary user can reach, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="pagehand-test-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@asynccontextmanager
async def real_server(directory: Path, program: str, person: Person, sandbox: str) -> AsyncIterator[JobServerProcess]:
    """Starts one as this person, with the program as its editor."""
    await asyncio.to_thread(_set_up, directory, program, own=not person.prefix)
    settings = {
        "REPOSITORY": str(directory / "r.git"),
        "EDITOR": "command",
        "COMMAND": json.dumps([person.python, str(directory / "program.py")]),
        "SANDBOX": sandbox,
        "EGRESS": "open" if sandbox == "none" else "none",
    }
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "PYTHONPATH": person.search_path}
    command = (*person.prefix, person.python, *PAGEHAND)
    async with job_server_process(directory / "data", settings, command, environment) as server:
        yield server


def _set_up(directory: Path, program: str, *, own: bool) -> None:
    (directory / "program.py").write_text(HEADER + program)
    make_bare(directory / "r.git", PAGES)
    if own:
        return
    for path in (directory, *directory.rglob("*")):
        os.chown(path, NOBODY, NOBODY)


READS_EVERYTHING = f"""
def ancestors():
    pid = os.getpid()
    while pid > 1:
        pid = int(open(f"/proc/{{pid}}/stat").read().rpartition(")")[2].split()[1])
        yield pid
for number, pid in enumerate(ancestors()):
    for name in ("environ", "mem", "maps", "cwd", "fd"):
        path = f"/proc/{{pid}}/{{name}}"
        attempt(f"{{number}} {{name}}", lambda: {KEY!r} in (str(os.listdir(path)) if name == "fd" else os.readlink(path)
                if name == "cwd" else "" if name == "mem" and open(path) else open(path, errors="replace").read()))
everything = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        everything.append(open(f"/proc/{{pid}}/environ", errors="replace").read())
    except OSError:
        pass
attempt("readable", lambda: len(everything))
attempt("key in sight", lambda: {KEY!r} in "".join(everything + list(os.environ.values())))
report()
"""


@pytest.mark.parametrize("sandbox", ["bubblewrap", pytest.param("none", marks=pytest.mark.full)])
async def test_no_program_reads_the_servers_key_from_its_process(directory: Path, sandbox: str) -> None:
    if sandbox == "bubblewrap":
        await asyncio.to_thread(needs_bubblewrap)
    async with real_server(directory, READS_EVERYTHING, ordinary_person(), sandbox) as server:
        job = await server.ended(await server.create("go"))
    assert job["status"] == "completed", job["details"]
    found = json.loads(git(directory / "r.git", "-c", "safe.directory=*", "show", f"pagehand/{job['id']}:found.json"))
    assert int(found["readable"]) >= 1, "this would prove nothing"
    assert found["key in sight"] == "False"
    if sandbox == "none":
        # Its parent is the supervisor, whose environment is the program's own; the supervisor's parent is the server.
        assert found["0 environ"] == "False"
        assert {found[f"1 {name}"] for name in ("environ", "mem", "cwd", "fd")} == {"PermissionError"}


RUNS_ON = """
import time
if os.fork() == 0:
    os.setsid()
pathlib.Path(os.path.expanduser("~/started")).touch()
time.sleep(600)
"""


@pytest.mark.full
@pytest.mark.parametrize("sandbox", ["bubblewrap", pytest.param("none", marks=pytest.mark.full)])
async def test_after_a_kill_no_agent_runs_beside_its_successor(directory: Path, sandbox: str) -> None:
    if sandbox == "bubblewrap":
        await asyncio.to_thread(needs_bubblewrap)
    person = Person((), sys.executable, str(ROOT))
    script = str(directory / "program.py")

    async def runs() -> list[int]:
        return await asyncio.to_thread(processes_naming, script)

    async def none_runs() -> bool:
        return not await runs()

    async def both_run() -> bool:
        return len([pid for pid in await runs() if _is_the_program(pid, script)]) == 2

    async with real_server(directory, RUNS_ON, person, sandbox) as server:
        job = await server.create("go")
        await until(both_run)
        server.kill()
        await server.dies()
        await until(none_runs)
        (directory / "program.py").write_text("open('x.md', 'w').write('x')")
        again = json.dumps([sys.executable, script])
        async with running(
            directory / "r.git", directory / "data", editor="command", command=again, sandbox=sandbox
        ) as successor:
            assert (await successor.ended(job))["status"] == "completed"


def _is_the_program(pid: int, script: str) -> bool:
    """Excludes the process that starts it and waits for it."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:2] == [script.encode()]
    except OSError:
        return False
