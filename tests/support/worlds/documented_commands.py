"""The commands of a page of documentation, run as they are written in a directory that looks like the repository."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCUMENTS = sorted(
    str(page.relative_to(ROOT))
    for pages in ("*.md", ".deploy/*.md", ".github/*.md", "bot/**/*.md", "tests/**/*.md")
    for page in ROOT.glob(pages)
)
LIMIT = 300.0
READY = {
    "run": "Pagehand is at work",
    "web": "Pagehand is at work",
    "worker": "Pagehand is at work",
    "jobserver": "http://",
    "demo": "http://",
}
"""What a command that runs until it is stopped prints once it works."""


def blocks(page: str, language: str = "sh") -> list[str]:
    """Returns the blocks of a page in the order that a reader follows."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]


def filled_in(block: str, values: Mapping[str, str]) -> str:
    """Replaces the page's placeholders."""
    for placeholder, value in values.items():
        block = block.replace(placeholder, value)
    return block


def serving(block: str) -> str:
    """Returns the command at the end of the block, if it runs until it is stopped."""
    match = re.search(rf"\.venv/bin/pagehand(?: --env-file \S+)? ({'|'.join(READY)})$", block.rstrip())
    return match.group(1) if match else ""


class Shell:
    """Runs blocks one after the other."""

    def __init__(self, directory: Path, environment: Mapping[str, str], stack: AsyncExitStack) -> None:
        self.directory = directory
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "PYTHONUNBUFFERED": "1", **environment}
        self._stack = stack
        self._serving: list[asyncio.subprocess.Process] = []
        for name in (path.name for path in ROOT.iterdir() if path.name not in {".venv", ".git", ".env"}):
            (directory / name).symlink_to(ROOT / name)
        (directory / ".venv").symlink_to(sys.prefix)
        stack.push_async_callback(self.stop_serving)

    async def follow(self, block: str) -> None:
        """Runs a block to its end or, if it ends with a command that serves, until that command works."""
        if command := serving(block):
            await self._serve(block, READY[command])
        else:
            await self.run(block)

    async def run(self, block: str) -> None:
        process = await self._start(block)
        async with asyncio.timeout(LIMIT):
            printed, _ = await process.communicate()
        assert process.returncode == 0, printed.decode()

    async def stop_serving(self) -> None:
        """Stops all commands that serve, as their service would; they have to end well."""
        while self._serving:
            process = self._serving.pop()
            with suppress(ProcessLookupError):  # it has ended by itself, which is for its output to explain
                os.killpg(process.pid, signal.SIGTERM)
            async with asyncio.timeout(LIMIT):
                printed, _ = await process.communicate()
            assert b"Traceback" not in printed, printed.decode()

    async def _serve(self, block: str, ready: str) -> None:
        process = await self._start(block)
        self._serving.append(process)
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
