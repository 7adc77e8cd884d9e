"""Every block of commands in the documentation is run as it is written, page by page, in a directory of its own.

What CI runs by itself (installing, the tests, the checks) is looked up in `.ci/run`. What takes long gets less to do.
"""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from support.servers.free_ports import free_port

from bot.workspace import WorkspaceServer

ROOT = Path(__file__).parents[3]
PAGES = (
    "README.md",
    ".github/CONTRIBUTING.md",
    "bot/README.md",
    "bot/jobserver/README.md",
)
IN_FULL = ("bot/workspace/README.md", "tests/README.md")
"""Two demos, which `test_commands.py` has, too; and two dozen commands, each of which imports most of the tests."""
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
SHORTER = (
    # Those that name no tests collect a few: all of them take ten seconds each.
    (r"(\.venv/bin/pytest[^&\n]* -m full)", r"\1 tests/jobserver/contract/test_real_agents.py"),
    (r'(?m)(\.venv/bin/pytest(?: -n \d+)?(?: -m "[^"\n]*")?)$', r"\1 tests/tutorial"),
    (r"(?m)^(\.ci/full)$", r"bash -n \1"),
    (r"(\.venv/bin/pytest\b[^&\n]*)", r"\1 --collect-only -q"),
    (r"-n \d+", "-n 0"),
    (r"--minutes \d+", "--help"),
    (r"--seconds \d+", "--seconds 1"),
    (r"(bench_\w+\.py)", r"\1 --help"),
)
READY = {
    "run": "Pagehand is at work",
    "jobserver": "http://",
    "demo": "http://",
}
"""What a command prints that goes on till it is stopped, once it works."""
LIMIT = 120.0


def blocks(page: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(r"^( *)```sh\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]


def run_by_ci(page: str, number: int, block: str) -> bool:
    """CI follows the README's first three blocks, and runs each check of the page for contributors."""
    if page == "README.md":
        return f"block {number})" in CI
    checks = re.findall(r"^\.venv/bin/(.+?)(?: && |$)", block, re.MULTILINE)
    return page.endswith("CONTRIBUTING.md") and all(check.startswith("pytest") or check in CI for check in checks)


def serving(block: str) -> str:
    """The command that the block ends with, where that goes on till it is stopped."""
    match = re.search(r"\.venv/bin/pagehand (run|jobserver|demo)$", block.rstrip())
    return match.group(1) if match else ""


def shortened(block: str) -> str:
    for pattern, replacement in SHORTER:
        block = re.sub(pattern, replacement, block)
    return block


class Shell:
    """Runs blocks one after the other, in a directory that looks like the repository."""

    def __init__(self, directory: Path, environment: Mapping[str, str], stack: AsyncExitStack) -> None:
        self.directory = directory
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "PYTHONUNBUFFERED": "1", **environment}
        self._stack = stack
        for name in (path.name for path in ROOT.iterdir() if path.name not in {".venv", ".git"}):
            (directory / name).symlink_to(ROOT / name)
        (directory / ".venv").symlink_to(sys.prefix)

    async def run(self, block: str) -> None:
        process = await self._start(shortened(block))
        async with asyncio.timeout(LIMIT):
            printed, _ = await process.communicate()
        assert process.returncode == 0, printed.decode()

    async def serve(self, block: str, ready: str) -> None:
        """Starts what goes on; it is stopped when the page is done, and has to end well."""
        process = await self._start(block)
        self._stack.push_async_callback(self._stop, process)
        assert process.stdout is not None
        printed = ""
        async with asyncio.timeout(LIMIT):
            while ready not in printed:
                line = (await process.stdout.readline()).decode()
                assert line, printed
                printed += line

    async def _start(self, block: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *("bash", "-euo", "pipefail", "-c", block),
            cwd=self.directory,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )

    @staticmethod
    async def _stop(process: asyncio.subprocess.Process) -> None:
        os.killpg(process.pid, signal.SIGTERM)
        async with asyncio.timeout(LIMIT):
            printed, _ = await process.communicate()
        assert b"Traceback" not in printed, printed.decode()


@asynccontextmanager
async def running_workspace() -> AsyncIterator[WorkspaceServer]:
    workspace = WorkspaceServer()
    await workspace.start()
    try:
        yield workspace
    finally:
        await workspace.stop()


@pytest.mark.parametrize("page", [*PAGES, *(pytest.param(page, marks=pytest.mark.full) for page in IN_FULL)])
async def test_what_is_written_works(page: str, tmp_path: Path) -> None:
    port, home = free_port(), tmp_path / "home"
    home.mkdir()
    async with AsyncExitStack() as stack:
        workspace = await stack.enter_async_context(running_workspace())
        placed = {
            "xoxb-…": workspace.credentials.bot_token,
            "xapp-…": workspace.credentials.app_token,
            "JOB_API_KEY=…": "JOB_API_KEY=a-key-of-the-job-api",
            "/tmp/": f"{tmp_path}/",  # noqa: S108 - the page's own words
            ":8765": f":{port}",
        }
        slack = {"SLACK_API_URL": workspace.api_url.rstrip("/"), "PAGEHAND_JOBSERVER_PORT": str(port)}
        shell = Shell(home, slack, stack)
        for number, written in enumerate(blocks(page), start=1):
            block = written
            for placeholder, real in placed.items():
                block = block.replace(placeholder, real)
            if run_by_ci(page, number, block):
                continue
            if command := serving(block):
                await shell.serve(block, READY[command])
            else:
                await shell.run(block)


def test_every_page_with_commands_is_among_them() -> None:
    pages = {
        str(path.relative_to(ROOT))
        for folder in (".", ".github", "bot", "tests")
        for path in (ROOT / folder).glob("*.md" if folder == "." else "**/*.md")
    }
    assert {page for page in pages if blocks(page)} <= {*PAGES, *IN_FULL}
