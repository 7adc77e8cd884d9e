"""The commands of a page of documentation, run as they are written in a directory that looks like the repository."""

import os
import re
import signal
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from support.programs import Program, Programs

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
        self._programs = Programs()
        self._serving: list[Program] = []
        for name in (path.name for path in ROOT.iterdir() if path.name not in {".venv", ".git", ".env"}):
            (directory / name).symlink_to(ROOT / name)
        (directory / ".venv").symlink_to(sys.prefix)
        stack.push_async_callback(self.stop_serving)

    async def follow(self, block: str) -> None:
        """Runs a block to its end or, if it ends with a command that serves, until that command works."""
        command = ("bash", "-euo", "pipefail", "-c", block)
        program = await self._programs.start(*command, directory=self.directory, environment=self._environment)
        if kind := serving(block):
            self._serving.append(program)
            await program.prints(READY[kind])
        else:
            assert await program.end() == 0, program.output

    async def stop_serving(self) -> None:
        """Stops all commands that serve, as their service would; they have to end well."""
        while self._serving:
            program = self._serving.pop()
            with suppress(ProcessLookupError):  # it has ended by itself, which is for its output to explain
                os.killpg(program.process.pid, signal.SIGTERM)
            await program.end()
            assert "Traceback" not in program.output, program.output
