"""A world to do harm in: a Slack workspace, a job API that keeps books, a database, and the bot as processes."""

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from chaos.crew import Crew, Nursery
from ledger import KEY, PROJECT, Ledger
from ports import free_port
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from bot.demo import manifest
from bot.store.engine import engine_for
from bot.workspace.app_config import AppConfig
from bot.workspace.models import Channel
from bot.workspace.server import WorkspaceServer

CHANNELS = ("docs", "general")
NEW_CHANNEL = 0.3
"""How often an errand begins in a channel of its own, that the bot is not in."""
PEOPLE = ("ana", "ben")
RETRY_DELAYS = (0.0, 1.0, 3.0)
"""Seconds before Slack brings an event again: as often as the real one, but sooner."""
JOB_API_TIMEOUT = 5.0
REQUEST_LEASE = JOB_API_TIMEOUT + 10.0
LEASE = 30.0
"""Seconds: the longest lease there is, that of what is said in Slack."""
_OPEN = (
    "SELECT (SELECT count(*) FROM notices WHERE due_at IS NOT NULL)"
    " + (SELECT count(*) FROM requests WHERE due_at IS NOT NULL)"
)


@dataclass
class World:
    """What surrounds the bot, and the bot itself."""

    name: str
    idempotent: bool
    http: bool
    workspace: WorkspaceServer
    ledger: Ledger
    crew: Crew
    rng: random.Random
    _engine: AsyncEngine = field(repr=False)
    faults: int = 0
    """How many faults of Slack and of the job API were ordered."""

    def new_channel(self, name: str) -> str:
        """Opens a public channel in which the people are, and the bot is not. Returns its name."""
        state = self.workspace.state
        people = [self.workspace.person(person).id for person in PEOPLE]
        state.add_channel(Channel(f"C0{name.upper()}", name, int(state.now()), people[0], members=people))
        return name

    async def work_left(self) -> int:
        """How many requests and notices are due, now or later."""
        return int((await self.rows(_OPEN))[0][0])

    async def rows(self, statement: str) -> Sequence[Any]:
        """Reads the database past the application."""
        async with self._engine.connect() as connection:
            return (await connection.execute(text(statement))).all()


@asynccontextmanager
async def world(
    nursery: Nursery, database_url: str, directory: Path, name: str, *, idempotent: bool, seed: int, http: bool = False
) -> AsyncIterator[World]:
    """A world without processes as yet; its database is new or has tables without rows. With `http`, Slack calls a port
    that all of its processes share, which one at a time can listen on; else they open Socket Mode connections.
    """
    rng = random.Random(f"{seed}/{name}")  # noqa: S311 - to be repeated with the same seed
    port = free_port() if http else None
    workspace = WorkspaceServer(_app(port), redeliver_after=1.5, retry_delays=RETRY_DELAYS)
    workspace.add_bot("general")
    ledger = Ledger(honours_keys=idempotent)
    engine = engine_for(database_url)
    await workspace.start()
    await ledger.start()
    try:
        environment = {
            **_environment(workspace, ledger, database_url, directory, idempotent=idempotent),
            **_receiving(workspace, port),
        }
        crew = Crew(nursery, environment, rng, name)
        yield World(name, idempotent, http, workspace, ledger, crew, rng, engine)
    finally:
        for life in crew.lives.values():
            life.signal(signal.SIGKILL)
            await life.ended.wait()
        await engine.dispose()
        await workspace.stop()
        await ledger.stop()


async def until(condition: Callable[[], Awaitable[object]], seconds: float, every: float = 0.2) -> bool:
    """Whether an (asynchronous) condition came true in time."""
    try:
        async with asyncio.timeout(seconds):
            while not await condition():  # noqa: ASYNC110 - what other processes do to a database tells nobody
                await asyncio.sleep(every)
    except TimeoutError:
        return False
    return True


def _app(port: int | None) -> AppConfig:
    """The app as manifest.yml describes it, or as the README changes it for HTTP."""
    if port is None:
        return manifest()
    url = f"http://127.0.0.1:{port}/slack/events"
    return replace(manifest(), request_url=url, interactivity_url=url)


def _receiving(workspace: WorkspaceServer, port: int | None) -> dict[str, str]:
    if port is None:
        return {"SLACK_APP_TOKEN": workspace.app_token}
    return {"SLACK_SIGNING_SECRET": workspace.signing_secret, "PORT": str(port)}


def _environment(
    workspace: WorkspaceServer, ledger: Ledger, database_url: str, directory: Path, *, idempotent: bool
) -> dict[str, str]:
    return {
        "SLACK_BOT_TOKEN": workspace.bot_token,
        "SLACK_API_URL": workspace.api_url,
        "JOB_API_URL": ledger.url,
        "JOB_API_KEY": KEY,
        "JOB_API_PROJECT": PROJECT,
        "JOB_API_TIMEOUT": str(JOB_API_TIMEOUT),
        "JOB_API_IDEMPOTENT": str(idempotent).lower(),
        "DATABASE_URL": database_url,
        "PAGEHAND_POLL_FASTEST": "0.5",
        "PAGEHAND_POLL_SLOWEST": "2",
        "HOME": str(directory),
    }
