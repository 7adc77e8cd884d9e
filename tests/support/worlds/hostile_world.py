"""A job server whose editor is a hostile program, in a real sandbox."""

import asyncio
import json
import os
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.worlds.jobserver_world import JobServerWorld, make_bare, running

from bot.jobserver.errors import JobServerError
from bot.jobserver.sandbox.choice import open_sandbox
from bot.jobserver.settings import JobServerSettings

PAGES = {"docs/start.md": "# Start\n\nA colour.\n"}
PYTHON = os.path.realpath(sys.executable)
"""Not that of a virtual environment, so that less of the machine is visible."""
HEADER = """
import json, os, pathlib, subprocess, sys
found = {}
def attempt(name, action):
    try:
        found[name] = str(action())
    except BaseException as error:
        found[name] = type(error).__name__
def report():
    pathlib.Path("found.json").write_text(json.dumps(found))
"""


def needs_bubblewrap() -> None:
    """Skips the test, with the server's own words, if bubblewrap does not work."""
    settings = JobServerSettings(repository="/x", api_key="a key of sixteen characters", allow_root=True)
    try:
        asyncio.run(open_sandbox(settings, Path("/nonexistent")))
    except JobServerError as error:
        pytest.skip(str(error))


@asynccontextmanager
async def hostile_world(
    tmp_path: Path, program: str, *arguments: str, **settings: Any
) -> AsyncIterator[JobServerWorld]:
    """Opens a server with its default sandbox; `program` can use what HEADER defines."""
    script = tmp_path / "program.py"
    script.write_text(HEADER + textwrap.dedent(program))
    command = json.dumps([PYTHON, str(script), *arguments])
    repository = tmp_path / "r.git"
    if not repository.exists():
        await asyncio.to_thread(make_bare, repository, PAGES)
    values = {"sandbox": "bubblewrap", "editor": "command", "command": command, **settings}
    async with running(repository, tmp_path / "data", **values) as world:
        yield world


async def findings(world: JobServerWorld) -> dict[str, str]:
    """Runs the program once, and returns its report."""
    return findings_of(world, await world.done("go"))


def findings_of(world: JobServerWorld, job: dict[str, Any]) -> dict[str, str]:
    assert job["status"] == "completed", world.log(job["id"])
    found: dict[str, str] = json.loads(world.show(f"pagehand/{job['id']}", "found.json"))
    return found


def processes_naming(text: str) -> list[int]:
    """Returns the living processes with this text in their command line, except this one."""
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and int(entry.name) != os.getpid() and _names(entry, text)
    ]


def _names(process: Path, text: str) -> bool:
    try:
        is_zombie = (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        return text.encode() in (process / "cmdline").read_bytes() and not is_zombie
    except OSError:
        return False
