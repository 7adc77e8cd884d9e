"""A world for chaos tests: a Slack workspace, a job API that keeps records, a database, and the bot as processes."""

import asyncio
import random
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine
from support.chaos.kill_target import SLACK_PACE
from support.chaos.process_group import ProcessGroup
from support.chaos.process_pool import ProcessPool
from support.servers.fake_job_api import KEY, PROJECT, FakeJobApiServer
from support.servers.free_ports import free_port
from support.servers.slack_faults import FaultyWorkspace, RateLimits
from support.webhooks import PATH, about, webhook
from support.worlds.app_world import reading_engine

from bot.cli.demo_services import manifest
from bot.domain.requests.request import RequestState
from bot.store.store import open_store
from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Channel, User
from bot.workspace.model.sample_data import HOME

CHANNELS = ("docs", "general", "ends")
AMONG_PARTICIPANTS = "general"
"""The channel in which replies of non-participants are held until their author says whom they are for."""
ENDS_ALONE = "ends"
"""The channel in which only ends are posted."""
"""The channel that gets reports about the setup, if it is not a person; the bot is not in it at first."""
NEW_CHANNEL = 0.3
"""How often a scenario starts in a new channel that the bot has not joined."""
REACTION_SCOPES = frozenset({"reactions:write"})
PEOPLE = ("ana", "ben")
GUEST = "gia"
"""A person who may not ask for anything."""
AT_THE_LIMIT, HOURLY_LIMIT = "dan", 2_000
"""A person who has used up the hourly limit; nobody else reaches it."""
MENTION = "@pagehand "
CODE_HOST, WEBHOOK_SECRET = "https://git.example", "planted-webhook-secret"
RETRY_DELAYS = (0.0, 1.0, 3.0)
"""Seconds before Slack redelivers an event: as often as the real one, but sooner."""
JOB_API_TIMEOUT = 5.0
REQUEST_LEASE = JOB_API_TIMEOUT + 10.0
LEASE = 30.0
"""Seconds: the longest lease, that of Slack calls."""
WITHOUT_CANCEL = "handbook"
"""The project whose job API cannot cancel: its agent is asked to stop in words. That of PROJECT can cancel, if the
ABILITIES say so.
"""
ABILITIES = (("true", "true"), ("true", "false"), ("false", "true"))
"""Whether PROJECT's job API can cancel, and whether job APIs take requesters. If it only cancels, jobs do not wait for
their cards. Each world has one of these, by its seed.
"""
_OPEN = (
    "SELECT (SELECT count(*) FROM notices WHERE due_at IS NOT NULL)"
    " + (SELECT count(*) FROM requests WHERE due_at IS NOT NULL)"
    " + (SELECT count(*) FROM homes WHERE due_at IS NOT NULL)"
    " + (SELECT count(*) FROM gaps)"
    " + (SELECT count(*) FROM pull_requests WHERE due_at IS NOT NULL AND followed LIKE '%\"found\"_null%')"
)
_FOLLOWED = "SELECT link, followed FROM pull_requests WHERE due_at IS NOT NULL"
_KNOWN = (
    "SELECT count(DISTINCT channel_id) FROM threads"
    " WHERE channel_id LIKE 'D%' AND EXISTS (SELECT 1 FROM listening WHERE owner = '')"
)
_PROJECTS = """
[[projects]]
name = "{}"
project = "{}"
cancel = {}
pictures = true
words = ["guides"]

[[projects]]
name = "{}"
project = "{}"
cancel = false
pictures = true
words = ["handbook"]

[[channels]]
id = "{}"
replies = "participants"

[[channels]]
id = "{}"
posts = "ends"
"""


@dataclass
class ProcessWorld:
    """The bot and everything around it."""

    name: str
    idempotent: bool
    http: bool
    workspace: FaultyWorkspace
    fake_job_api: FakeJobApiServer
    process_pool: ProcessPool
    rng: random.Random
    database_url: str
    _engine: AsyncEngine = field(repr=False)
    lacks_reactions: bool = False
    """Whether the app was installed without the scope for reactions."""
    signing_secret_file: Path | None = None
    """The file that the processes read Slack's signing secret from, over HTTP."""
    signing_secrets: list[str] = field(default_factory=list)
    """All values of the signing secret so far."""
    faults: int = 0
    """How many faults of Slack and the job API were injected."""

    def new_channel(self, name: str) -> str:
        """Opens a public channel with the people but without the bot, and returns its name."""
        state = self.workspace.state
        people = [self.workspace.people[person].id for person in (*PEOPLE, GUEST, AT_THE_LIMIT)]
        state.add_channel(Channel(f"C0{name.upper()}", name, int(state.now()), people[0], members=people))
        return name

    async def keep_nothing_once_known(self, over: asyncio.Event) -> None:
        """From when the first process has listened, and everybody's direct message is known, Slack keeps nothing for
        processes that are away: what was before cannot be found in its history.
        """
        while not (over.is_set() or self.http or self.workspace.faults.keeps_nothing):
            self.workspace.faults.keeps_nothing = (await self.rows(_KNOWN))[0][0] == len(PEOPLE)
            await asyncio.sleep(0.2)

    async def when_people_write(self) -> None:
        """Waits for a downtime that is about to begin, so that it has something to find afterwards."""
        await self.process_pool.calm.wait()

    def is_asked(self, channel: str, request_id: str, state: RequestState | None) -> bool:
        """Returns whether a request waits for its person, who was privately asked, with buttons, about it."""
        if state is not RequestState.AWAITING_PERSON:
            return False
        asked = (message for name in PEOPLE for message in self.workspace.people[name].ephemerals(channel))
        return any(request_id in str(message.blocks) for message in asked)

    async def work_left(self) -> int:
        """Returns how many requests, notices and Homes are due, now or later, and how many merges are unseen."""
        return int((await self.rows(_OPEN))[0][0]) + len(await self._unseen_merges())

    async def late_webhooks(self) -> None:
        """The code host tells late of the merges that nobody has seen."""
        for link in await self._unseen_merges():
            await self.webhook(link)

    async def _unseen_merges(self) -> set[str]:
        merged = ((link, text) for link, text in await self.rows(_FOLLOWED) if link in self.fake_job_api.merged)
        return {link for link, text in merged if '"merged"' not in text}

    async def webhook(self, link: str) -> None:
        """The code host tells of a pull request. Over HTTP, nobody may be there to hear it. Without that, a process
        that serves HTTP only has it recorded.
        """
        if self.http:
            owner, name, _, number = link.removeprefix(f"{CODE_HOST}/").split("/")
            url = f"http://127.0.0.1:{self.process_pool.environment['PORT']}{PATH}"
            with suppress(aiohttp.ClientError):
                async with (
                    aiohttp.ClientSession() as session,
                    session.post(url, **webhook(WEBHOOK_SECRET, about(f"{owner}/{name}", int(number)))) as answer,
                ):
                    assert answer.status in {HTTPStatus.ACCEPTED, HTTPStatus.SERVICE_UNAVAILABLE}
            return
        store = await open_store(self.database_url)
        await store.transact(lambda tx: tx.pull_requests.make_due([link]))
        await store.close()

    async def rows(self, statement: str) -> Sequence[Any]:
        """Reads the database without the application."""
        async with self._engine.connect() as connection:
            return (await connection.execute(text(statement))).all()


Disruption = Callable[[ProcessWorld, asyncio.Event], Awaitable[None]]
"""Injects kills or pauses until the event is set, and leaves at least one process alive."""


@dataclass(frozen=True)
class Round:
    """A world and what is done to it, until the given number of kills is reached or the time has passed, but not before
    the given numbers of kills at named points and of downtimes in which somebody wrote; or until the given number of
    pauses.

    `pace` is the number of seconds between scenarios. `database` is the URL of one with empty tables. With `http`,
    Slack calls a port that all processes share and one at a time can listen on; otherwise they open Socket Mode
    connections. With `slack_pace`, Slack enforces its limits, with a minute shortened by this factor. `without`: scopes
    that the app was not installed with.
    """

    name: str
    database: str
    disruption: Disruption
    idempotent: bool
    kills: float
    seconds: float
    pace: float = 1.0
    pauses: float = float("inf")
    at_points: int = 0
    downtimes: int = 0
    http: bool = False
    slack_pace: float | None = None
    without: tuple[str, ...] = ()


@asynccontextmanager
async def world(process_group: ProcessGroup, directory: Path, plan: Round, seed: int) -> AsyncIterator[ProcessWorld]:
    """Opens the world of a round, without processes."""
    name, database_url, idempotent, slack_pace = plan.name, plan.database, plan.idempotent, plan.slack_pace
    rng = random.Random(f"{seed}/{name}")  # noqa: S311 - to be repeated with the same seed
    cancels, requesters = ABILITIES[(seed + len(name)) % len(ABILITIES)]
    port = free_port() if plan.http else None
    app = _app(port)
    workspace = FaultyWorkspace(
        replace(app, scopes=app.scopes.difference(plan.without)),
        ack_timeout=1.5,
        retry_delays=RETRY_DELAYS,
        rate_limits=RateLimits(slack_pace) if slack_pace else None,
    )
    workspace.faults.refuse_blocks(rng.choice(("card", "plan")))
    workspace.state.add_channel(Channel("C0ENDS001", ENDS_ALONE, 0, workspace.people[PEOPLE[0]].id))
    workspace.channels[ENDS_ALONE].members += [workspace.people[person].id for person in PEOPLE]
    for channel in ("general", ENDS_ALONE):
        workspace.channels.add_bot(channel)
    workspace.state.add_user(User("U0DAN0001", AT_THE_LIMIT, "Dan Weber", HOME.id))
    for channel in CHANNELS:
        workspace.channels[channel].members += [workspace.people[person].id for person in (GUEST, AT_THE_LIMIT)]
    fake_job_api = FakeJobApiServer(honours_keys=idempotent)
    fake_job_api.projects.add(WITHOUT_CANCEL)
    engine = reading_engine(database_url)
    await _use_up_the_limit(engine, workspace.people[AT_THE_LIMIT].id)
    secret_file = directory / f"{name}.signing-secret"
    put_secrets(secret_file, workspace.credentials.signing_secret)
    await workspace.start()
    await fake_job_api.start()
    try:
        environment = {
            **_environment(workspace, fake_job_api, database_url, directory, idempotent=idempotent),
            "JOB_API_REQUESTER": requesters,
            "PAGEHAND_PROJECTS": str(_projects_file(workspace, directory, name, cancels)),
            **_receiving(workspace, port, secret_file),
            **({SLACK_PACE: str(slack_pace)} if slack_pace else {}),
        }
        process_pool = ProcessPool(process_group, environment, rng, name)
        made = ProcessWorld(
            name, idempotent, plan.http, workspace, fake_job_api, process_pool, rng, database_url, engine
        )
        made.signing_secret_file = secret_file if plan.http else None
        made.signing_secrets.append(workspace.credentials.signing_secret)
        made.lacks_reactions = bool({*plan.without} & REACTION_SCOPES)
        yield made
    finally:
        for target in process_pool.targets.values():
            target.signal(signal.SIGKILL)
            await target.ended.wait()
        await engine.dispose()
        await workspace.stop()
        await fake_job_api.stop()


async def _use_up_the_limit(engine: AsyncEngine, person_id: str) -> None:
    asked = text("INSERT INTO counted_requests (request_id, person_id, at) VALUES (:request, :person, :at)")
    rows = [{"request": f"used-{n}", "person": person_id, "at": time.time()} for n in range(HOURLY_LIMIT)]
    async with engine.begin() as connection:
        await connection.execute(asked, rows)


async def until(condition: Callable[[], Awaitable[object]], seconds: float, every: float = 0.2) -> bool:
    """Returns whether an (asynchronous) condition became true in time."""
    try:
        async with asyncio.timeout(seconds):
            while not await condition():  # noqa: ASYNC110 - what other processes do to a database tells nobody
                await asyncio.sleep(every)
    except TimeoutError:
        return False
    return True


def _app(port: int | None) -> AppConfig:
    """Returns the app described by manifest.yml, or as the README changes it for HTTP."""
    if port is None:
        return manifest()
    url = f"http://127.0.0.1:{port}/slack/events"
    return replace(manifest(), request_url=url, interactivity_url=url)


def put_secrets(file: Path, *values: str) -> None:
    """Replaces a file with secrets at once, so that nobody reads half of it."""
    written = file.with_suffix(".new")
    written.write_text("\n".join(values))
    written.replace(file)


def _receiving(workspace: FaultyWorkspace, port: int | None, secret_file: Path) -> dict[str, str]:
    if port is None:
        return {"SLACK_APP_TOKEN": workspace.credentials.app_token}
    webhooks = {"CODE_HOST_URL": CODE_HOST, "CODE_HOST_WEBHOOK_SECRET": WEBHOOK_SECRET}
    return {"SLACK_SIGNING_SECRET_FILE": str(secret_file), "PORT": str(port), **webhooks}


def _environment(
    workspace: FaultyWorkspace, fake_job_api: FakeJobApiServer, database_url: str, directory: Path, *, idempotent: bool
) -> dict[str, str]:
    return {
        "SLACK_BOT_TOKEN": workspace.credentials.bot_token,
        "SLACK_API_URL": workspace.api_url,
        "JOB_API_URL": fake_job_api.url,
        "JOB_API_KEY": KEY,
        "JOB_API_TIMEOUT": str(JOB_API_TIMEOUT),
        "JOB_API_IDEMPOTENT": str(idempotent).lower(),
        "JOB_API_FILES": "true",
        "JOB_API_MODES": "true",
        "JOB_API_PULL_REQUEST": "true",
        "DATABASE_URL": database_url,
        "PAGEHAND_HOURLY_LIMIT": str(HOURLY_LIMIT),
        "PAGEHAND_MERGE_SECONDS": "1",
        "PAGEHAND_POLL_FASTEST": "0.5",
        "PAGEHAND_POLL_SLOWEST": "2",
        "HOME": str(directory),
    }


def _projects_file(workspace: FaultyWorkspace, directory: Path, name: str, cancels: str) -> Path:
    """Two projects, between which a job asks if no keyword decides; and a channel with a reply mode."""
    file = directory / f"{name}.toml"
    channel_id = workspace.channels[AMONG_PARTICIPANTS].id
    ends_id = workspace.channels[ENDS_ALONE].id
    file.write_text(_PROJECTS.format(PROJECT, PROJECT, cancels, WITHOUT_CANCEL, WITHOUT_CANCEL, channel_id, ends_id))
    return file
