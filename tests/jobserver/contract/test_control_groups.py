"""Limits of a run's memory and processes: a control group, created, filled, reported and removed by the supervisor."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.fakes.fake_progress import FakeProgress
from support.worlds.agent_world import agent_world

from bot.jobserver.checks.checker import CheckCouldNotRunError, CheckProgram
from bot.jobserver.editors.command import CommandEditor
from bot.jobserver.editors.interface import EditTask
from bot.jobserver.egress.run_egress import OpenEgress
from bot.jobserver.errors import EditError
from bot.jobserver.sandbox.choice import NoSandbox
from bot.jobserver.sandbox.interface import Workspace
from bot.jobserver.sandbox.limits import RunLimits

pytestmark = pytest.mark.skipif("sys.platform != 'linux'", reason="control groups are Linux's")
ROOT = Path(__file__).parents[3]


@pytest.fixture
def limits(tmp_path: Path) -> RunLimits:
    """Uses a folder that only looks like a control group, so that everything written into it can be read."""
    groups = tmp_path / "groups"
    groups.mkdir()
    return RunLimits(memory=2**30, processes=10, disk=2**30, groups=groups)


OUT_OF_MEMORY = """
import os, pathlib, signal
group = next(pathlib.Path({groups!r}).glob("run-*"))
(group / "memory.events").write_text("low 0\\nmax 9\\noom 1\\noom_kill {killed}\\noom_group_kill {killed}\\n")
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(limits: RunLimits, *, times: int = 1) -> str:
    """Returns a program that ends as if the kernel had killed it this often for its memory."""
    return OUT_OF_MEMORY.format(groups=str(limits.groups), killed=times)


def command_editor(limits: RunLimits, program: str) -> CommandEditor:
    return CommandEditor((sys.executable, "-c", program), NoSandbox(limits), limits, OpenEgress(), time_limit=30)


def task(tmp_path: Path) -> EditTask:
    workspace = Workspace(tmp_path / "copy", tmp_path / "home")
    for folder in (workspace.copy, workspace.home):
        folder.mkdir(exist_ok=True)
    return EditTask("go", workspace, tmp_path / "log")


async def test_a_run_is_put_into_a_control_group_with_its_limits(tmp_path: Path, limits: RunLimits) -> None:
    program = "import os; print(os.getpid())"
    result = await command_editor(limits, program).edit(task(tmp_path), FakeProgress())
    (group,) = (limits.groups or tmp_path).iterdir()
    expected = {
        "memory.max": str(2**30), "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "80",
        "cgroup.procs": result.summary, "cgroup.kill": "1",
    }  # fmt: skip
    assert {file.name: file.read_text() for file in group.iterdir()} == expected


WORDS = "ended: it used more than 1 GiB of memory"


async def test_an_out_of_memory_kill_is_detected(tmp_path: Path, limits: RunLimits) -> None:
    with pytest.raises(EditError, match=WORDS):
        await command_editor(limits, killed(limits)).edit(task(tmp_path), FakeProgress())


async def test_an_agent_killed_for_its_memory_is_reported(tmp_path: Path, limits: RunLimits) -> None:
    turn = "def turn(agent, text):\n    " + killed(limits).strip().replace("\n", "\n    ")
    world = agent_world(tmp_path, turn, limits=limits, sandbox=NoSandbox(limits))
    with pytest.raises(EditError, match=WORDS):
        await world.edit("go")


async def test_a_check_killed_for_its_memory_is_reported(tmp_path: Path, limits: RunLimits) -> None:
    copy = task(tmp_path).workspace.copy
    with pytest.raises(CheckCouldNotRunError, match=WORDS):
        await CheckProgram(NoSandbox(limits), limits, OpenEgress(), 30).run(
            (sys.executable, "-c", killed(limits)), copy
        )


async def test_a_program_killed_otherwise_is_not_called_too_large(tmp_path: Path, limits: RunLimits) -> None:
    with pytest.raises(EditError, match="was ended by signal 9"):
        await command_editor(limits, killed(limits, times=0)).edit(task(tmp_path), FakeProgress())


async def test_without_its_control_group_no_program_is_started(tmp_path: Path, limits: RunLimits) -> None:
    (limits.groups or tmp_path).rmdir()
    with pytest.raises(EditError, match="its control group cannot be used: No such file or directory"):
        await command_editor(limits, "print()").edit(task(tmp_path), FakeProgress())


REAL = """
import asyncio, json, pathlib, sys, tempfile
from bot.jobserver import subprocesses
from bot.jobserver.sandbox.bubblewrap import supervised
from bot.jobserver.sandbox.control_groups import open_control_groups
from bot.jobserver.sandbox.limits import RunLimits

PROGRAMS = {
    "memory without a name": "import os; f = os.memfd_create('x'); [os.write(f, bytes(2**20)) for _ in range(400)]",
    "anonymous memory": "x = bytearray(400 * 2**20); x[::4096] = bytes(len(x[::4096])); print('held')",
    "little": "print('done')",
    "many": "import os, time\\nfor _ in range(500):\\n    if os.fork() == 0: time.sleep(60)",
    "leaves": "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True); print('left')",
}

async def main():
    groups = open_control_groups()
    found = {"groups": str(groups), "folder": str(groups.folder)}
    if groups.folder:
        limits = RunLimits(200 * 2**20, 10, 2**30, groups.folder)
        for name, program in PROGRAMS.items():
            arguments = supervised((sys.executable, "-c", program), limits)
            output = subprocesses.LastBytes(10_000)
            place = pathlib.Path(tempfile.gettempdir())
            command = subprocesses.Command(arguments, place, {"PATH": "/usr/bin:/bin"}, 60)
            code = await subprocesses.run(command, stdout=output)
            last = output.getvalue().decode().strip().rpartition("\\n")[2]
            found[name] = limits.exceeded_by_exit_code(code) or last
        found["left"] = [path.name for path in groups.folder.glob("run-*")]
    print(json.dumps(found))

asyncio.run(main())
"""
"""In its own delegated group."""


def test_the_kernel_enforces_what_the_watch_cannot_count(tmp_path: Path) -> None:
    if not Path("/run/systemd/system").is_dir() or shutil.which("systemd-run") is None:
        pytest.skip("systemd does not run here, so that nothing is delegated")
    whose = [] if os.geteuid() == 0 else ["--user"]
    script = tmp_path / "real.py"
    script.write_text(REAL)
    command = ["systemd-run", *whose, "--scope", "--quiet", "--property=Delegate=yes", sys.executable, str(script)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"systemd delegates nothing to this user: {done.stderr[-200:]}")
    found = json.loads(done.stdout.strip().rpartition("\n")[2])
    if found["folder"] == "None":
        pytest.skip(found["groups"])
    too_much = "it used more than 200 MiB of memory"
    assert (found["memory without a name"], found["anonymous memory"]) == (too_much, too_much)
    assert (found["little"], found["leaves"], found["left"]) == ("done", "left", [])
    assert "Resource temporarily unavailable" in found["many"]
