"""The whole loop on one machine: a workspace, a job server with a small documentation repository, and the bot."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import yaml
from pydantic import SecretStr

from bot.app import App, Edges, open_edges
from bot.config import Config, load
from bot.domain.commands import plain
from bot.domain.models import Thread
from bot.errors import PagehandError
from bot.jobserver import JobServer, JobServerError, JobServerSettings
from bot.jobserver.sample_repository import make_sample_repository
from bot.workspace.app_config import AppConfig
from bot.workspace.models import Message
from bot.workspace.server import WorkspaceServer

CHANNEL = "docs"
PROJECT = "docs"
WORKSPACE_PORT, JOB_SERVER_PORT = 8420, 8421
"""Taken where they are free, so that links of a kept demo still lead somewhere the next time."""
PROMPT = 'Replace "colour" with "color" in the guides'

Tell = Callable[[str], None]


class DemoError(PagehandError):
    """The demo did not get to its pull request; in words."""


@dataclass
class Demo:
    """What runs, and where it is reached."""

    workspace: WorkspaceServer
    app: App
    edges: Edges
    url: str
    repository: Path


def manifest() -> AppConfig:
    """The app as manifest.yml describes it: the demo's workspace grants just what a real one would."""
    packaged = files("bot") / "manifest.yml"
    path = packaged if packaged.is_file() else Path(__file__).parents[1] / "manifest.yml"
    return AppConfig.from_manifest(yaml.safe_load(path.read_text(encoding="utf-8")))


@asynccontextmanager
async def running(directory: Path, port: int | None = None, job_server_port: int | None = None) -> AsyncIterator[Demo]:
    """Runs the demo with its data in `directory`. A port that is not given is a free one."""
    key = secrets.token_urlsafe(24)
    repository = await asyncio.to_thread(make_sample_repository, directory)
    async with AsyncExitStack() as stack:
        job_server, job_api_url = await _start_job_server(directory, repository, key, job_server_port)
        stack.push_async_callback(job_server.stop)
        workspace = WorkspaceServer(manifest(), directory=directory / "workspace")
        stack.push_async_callback(workspace.stop)
        url = await _start_workspace(workspace, port)
        config = _config(directory, workspace, job_api_url, key)
        edges = await open_edges(config)
        app = App(config, edges)
        stack.push_async_callback(app.stop)
        await app.start()
        yield Demo(workspace, app, edges, url, repository)


async def _start_job_server(directory: Path, repository: Path, key: str, port: int | None) -> tuple[JobServer, str]:
    settings = JobServerSettings(
        port=JOB_SERVER_PORT if port is None else port,
        api_key=SecretStr(key),
        project_id=PROJECT,
        repository=str(repository),
        data_directory=directory / "jobserver",
    )
    server = JobServer(settings)
    try:
        return server, await server.start()
    except JobServerError:
        if port is not None:
            raise
    server = JobServer(settings.model_copy(update={"port": 0}))
    return server, await server.start()


async def _start_workspace(workspace: WorkspaceServer, port: int | None) -> str:
    try:
        return await workspace.start(port=WORKSPACE_PORT if port is None else port)
    except OSError:
        if port is not None:
            raise
    return await workspace.start()


async def once(demo: Demo, prompt: str, replies: tuple[str, ...], tell: Tell, *, limit: float) -> str:
    """Does the whole loop as Ana, printing the thread as it grows; returns the pull request's link.

    Raises DemoError when there is none within `limit` seconds.
    """
    scribe, there = Scribe(demo.workspace, tell), _card(demo.workspace)
    tell(f"#{CHANNEL}")
    tell(f"  Ana Silva: /docs {prompt}")
    answer = await demo.workspace.person("ana").command(CHANNEL, "/docs", prompt)
    if answer.text:
        tell(f"  (only Ana sees) {plain(answer.text)}")
    try:
        async with asyncio.timeout(limit):
            ts = await demo.workspace.wait_for(lambda: _card(demo.workspace, after=there), limit)
            thread = await _ended(demo, ts, 0, scribe)
            for number, reply in enumerate(replies, start=1):
                await demo.workspace.person("ana").say(CHANNEL, reply, thread_ts=ts)
                thread = await _ended(demo, ts, number, scribe)
    except TimeoutError:
        raise DemoError(f"No pull request after {limit:.0f} seconds.") from None
    link = thread.known.job.pr_link if thread.known.job else None
    if not link:
        raise DemoError("The job ended without a pull request.")
    return link


class Scribe:
    """Prints a thread as text: each message once, the card again whenever it changes."""

    def __init__(self, workspace: WorkspaceServer, tell: Tell) -> None:
        self._workspace = workspace
        self._tell = tell
        self._printed: dict[str, str] = {}

    def print(self, ts: str) -> None:
        """Prints what is new in the thread."""
        for message in self._workspace.thread(CHANNEL, ts):
            text = f"{self._read(message.text)}{''.join(f'  :{name}:' for name in message.reactions)}"
            if self._printed.get(message.ts) != text:
                indent = "  " if message.ts == ts else "    "
                again = " (changed)" if message.ts in self._printed else ""
                self._tell(f"{indent}{self._author(message)}{again}: {text.replace(chr(10), chr(10) + indent + '  ')}")
                self._printed[message.ts] = text

    def _read(self, text: str) -> str:
        for person in self._workspace.state.people.values():
            text = text.replace(f"<@{person.id}>", f"@{person.real_name}")
        return plain(text)

    def _author(self, message: Message) -> str:
        return self._workspace.state.people[message.user].real_name


async def _ended(demo: Demo, ts: str, turn: int, scribe: Scribe) -> Thread:
    """Waits till the thread tells the end of a round (the first one, or that of a follow-up)."""
    ends = tuple(f"/r{turn}/{status}" for status in ("completed", "failed", "archived"))

    def told() -> bool:
        scribe.print(ts)
        keys = [_key(message) for message in demo.workspace.thread(CHANNEL, ts)]
        return any(key.endswith((*ends, "/refused/1", "/unsure/1")) for key in keys)

    await demo.workspace.wait_for(told, 3600)
    channel = demo.workspace.channel(CHANNEL)
    thread = await demo.edges.store.transact(lambda tx: tx.thread_at(channel.id, ts))
    if thread is None:
        raise DemoError("The thread is unknown.")
    return thread


def _card(workspace: WorkspaceServer, after: str = "") -> str:
    """The `ts` of the newest card; empty while there is none after that one."""
    cards = [message.ts for message in workspace.messages(CHANNEL) if _key(message).endswith("/card")]
    return cards[-1] if cards and cards[-1] != after else ""


def _key(message: Message) -> str:
    payload = (message.metadata or {}).get("event_payload", {})
    return str(payload.get("key", ""))


def _config(directory: Path, workspace: WorkspaceServer, job_api_url: str, key: str) -> Config:
    return load(
        {
            "SLACK_BOT_TOKEN": workspace.bot_token,
            "SLACK_APP_TOKEN": workspace.app_token,
            "SLACK_API_URL": workspace.api_url,
            "JOB_API_URL": job_api_url,
            "JOB_API_KEY": key,
            "JOB_API_PROJECT": PROJECT,
            "JOB_API_IDEMPOTENT": "true",
            "DATABASE_URL": f"sqlite:///{directory / 'pagehand.sqlite3'}",
            "PAGEHAND_POLL_FASTEST": "0.5",
            "PAGEHAND_POLL_SLOWEST": "5",
        }
    )
