"""What a person runs at a terminal: `pagehand setup`, which shows no typed secret, and the demo."""

import asyncio
import os
import pty
import re
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from bot.cli.demo_services import manifest
from bot.runtime.env_file import read_env_file
from bot.workspace import WorkspaceServer

PATIENCE = 60.0
CTRL_C = "\x03"


@dataclass
class Terminal:
    """A process at its own terminal."""

    process: asyncio.subprocess.Process
    controller: int
    shown: str = ""
    all: str = ""

    async def sees(self, words: str) -> None:
        """Waits for the words, and discards the output before them."""
        async with asyncio.timeout(PATIENCE):
            while words not in self.shown:
                read = await asyncio.to_thread(os.read, self.controller, 65_536)
                text = re.sub(r"\x1b\[[0-9;]*m", "", read.decode())
                self.shown, self.all = self.shown + text, self.all + text
        self.shown = self.shown.partition(words)[2]

    async def types(self, text: str) -> None:
        await asyncio.to_thread(os.write, self.controller, text.encode())

    async def answers(self, question: str, text: str) -> None:
        await self.sees(question)
        await self.types(f"{text}\n")

    async def asks_for_a_secret(self, question: str) -> None:
        """Waits for the question and for the echo to end: then the terminal discards earlier input."""
        await self.sees(question)
        async with asyncio.timeout(PATIENCE):
            while termios.tcgetattr(self.controller)[3] & termios.ECHO:  # noqa: ASYNC110 - a terminal notifies nobody
                await asyncio.sleep(0.01)

    async def interrupts(self, words: str) -> None:
        """Presses Ctrl-C until the words appear: Python misses a signal just before it starts to wait for input."""

        async def press() -> None:
            while True:
                await self.types(CTRL_C)
                await asyncio.sleep(PATIENCE / 6)

        pressing = asyncio.create_task(press())
        await self.sees(words)
        pressing.cancel()

    async def answers_secretly(self, question: str, text: str) -> None:
        await self.asks_for_a_secret(question)
        await self.types(f"{text}\n")


@pytest.fixture
async def workspace() -> AsyncIterator[WorkspaceServer]:
    workspace = WorkspaceServer(manifest(), is_installed=False)
    await workspace.start()
    yield workspace
    await workspace.stop()


@pytest.fixture
async def ended() -> AsyncIterator[AsyncExitStack]:
    """Ends what a failed test left at its terminals, so that nothing waits for their output."""
    async with AsyncExitStack() as stack:
        yield stack


async def start(directory: Path, ended: AsyncExitStack, *arguments: str, **environment: str) -> Terminal:
    """Starts it in its own session; the terminal that it opens first becomes the controlling one."""
    controller, terminal = pty.openpty()
    program = f"import os, runpy, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); sys.argv[1:] = {list(arguments)}; "
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", f"{program}runpy.run_module('bot', run_name='__main__')"),
        cwd=directory,
        env={"PATH": os.environ["PATH"], "TERM": "xterm", **environment},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)

    async def end() -> None:
        if process.returncode is None:
            process.kill()
            await process.wait()

    ended.callback(os.close, controller)
    ended.push_async_callback(end)
    return Terminal(process, controller)


@pytest.mark.full
async def test_a_person_sets_up_the_app_interrupts_and_resumes(
    workspace: WorkspaceServer, tmp_path: Path, ended: AsyncExitStack
) -> None:
    credentials = workspace.credentials
    first = await start(tmp_path, ended, "setup", SLACK_API_URL=workspace.api_url)
    await first.answers_secretly("Configuration token (empty: by hand):", credentials.configuration_token)
    await first.sees("Install to Workspace")
    workspace.install()
    await first.answers_secretly("Bot token (xoxb-…):", credentials.bot_token)
    await first.asks_for_a_secret("App-level token (xapp-…):")
    await first.interrupts("All answers so far are in .env")
    assert await first.process.wait() == 130
    assert list(read_env_file(tmp_path / ".env")) == ["SLACK_API_URL", "SLACK_APP_ID", "SLACK_BOT_TOKEN"]
    second = await start(tmp_path, ended, "setup", SLACK_API_URL=workspace.api_url)
    await second.answers_secretly("App-level token (xapp-…):", credentials.app_token)
    await second.answers("Post a message in a channel? [Y/n]:", "")
    await second.answers("Channel (#name, or its id):", workspace.channels["docs"].id)
    await second.sees("A message was posted in")
    for terminal in (first, second):
        assert not [token for token in (credentials.bot_token, credentials.app_token) if token in terminal.all]


@pytest.mark.full
async def test_the_demo_keeps_its_link_alive_until_enter(tmp_path: Path, ended: AsyncExitStack) -> None:
    """Pressed before that, it is no answer."""
    demo = await start(tmp_path, ended, "demo", "--once", "Fix the typos")
    await demo.types("\n")
    await demo.sees("Its page stays until you press Enter.")
    link = re.search(r"Pull request: (\S+)\r\nIts page", demo.all)
    assert link is not None
    async with aiohttp.ClientSession() as session, session.get(link[1]) as page:
        assert page.status == 200
    await demo.types("\n")
    async with asyncio.timeout(PATIENCE):
        assert await demo.process.wait() == 0
