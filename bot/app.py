"""The composition root: builds everything from the settings, starts it, and drains it."""

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
from pydantic import SecretStr
from slack_sdk.web.async_client import AsyncWebClient

from bot.clock import SteadyClock
from bot.config import Config
from bot.domain.decide import Polling
from bot.errors import CannotStart, ChatError, ChatUncertain, ChatUnreachable, SchemaMismatch, StoreError
from bot.health import Health, HealthPage, Part
from bot.jobs.client import HttpJobApi, JobApiSettings
from bot.loops.intake import Intake
from bot.loops.loop import Loop, Terms
from bot.loops.outbox import Outbox
from bot.loops.retention import Retention
from bot.loops.watch import Watch
from bot.ports import Chat, JobApi, Store
from bot.service import Service
from bot.slack.app import SlackApp
from bot.slack.chat import SlackChat
from bot.slack.receiving.http_events import HttpReceiver
from bot.slack.receiving.socket_mode import SocketReceiver
from bot.slack.response_urls import ResponseUrls
from bot.slack.web_api import Identity, identify, new_client, new_session
from bot.slack.whispers import Whispers
from bot.slack.wording import Wording
from bot.store.schema import SchemaState, migrate, schema_state
from bot.store.store import open_store

logger = logging.getLogger(__name__)

LEASE_MARGIN = 10.0
"""Seconds that a claim outlives the longest call made under it."""
CHAT_LIMIT = 12.0
CHAT_LEASE = 30.0
STOP_LIMIT = 8.0
"""Seconds for what is under way to end when the process is asked to stop."""

SLOWEST_START = 30.0
"""Seconds between tries to reach Slack at the start."""

Receiver = SocketReceiver | HttpReceiver


@dataclass
class Edges:
    """The world as Pagehand meets it: what a test or an experiment may wrap before the application is built on it."""

    store: Store
    job_api: JobApi
    chat: Chat
    identity: Identity
    session: aiohttp.ClientSession
    whispers: Whispers
    wording: Wording
    closing: contextlib.AsyncExitStack = field(default_factory=contextlib.AsyncExitStack)


async def open_edges(config: Config) -> Edges:
    """Opens the database, asks Slack who we are, and makes the clients.

    Raises StoreError, SchemaMismatch, CannotStart: with words that say what to do about it.
    """
    async with contextlib.AsyncExitStack() as stack:
        store = await _open_store(config)
        stack.push_async_callback(store.close)
        session = new_session()
        stack.push_async_callback(session.close)
        client = new_client(config.slack_bot_token.get_secret_value(), session, base_url=f"{config.slack_api_url}/")
        identity = await _identified(client)
        logger.info("this is %s in the workspace %s", identity.bot_user_id, identity.team)
        job_api = HttpJobApi(_job_api_settings(config))
        stack.push_async_callback(job_api.aclose)
        wording = Wording(config.command, config.admin, identity.bot_user_id)
        whispers = Whispers(client, ResponseUrls(session))
        chat = SlackChat(client, identity, wording, whispers)
        return Edges(store, job_api, chat, identity, session, whispers, wording, stack.pop_all())


class App:
    """The bot: `start`, then `stop`. `owner` names this process in the database, for this one start."""

    def __init__(self, config: Config, edges: Edges) -> None:
        self._edges = edges
        self.owner = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.loops = self._build_loops(config, edges)
        self.service = Service(edges.store, project_id=config.job_api_project, recorded=self.wake)
        slack = SlackApp(self.service, identity=edges.identity, wording=edges.wording, whispers=edges.whispers)
        self.health = Health(self._parts)
        self._retention = Retention(edges.store, days=config.keep_days)
        self.receiver = self._build_receiver(config, slack)
        self._page = HealthPage(self.health, host="0.0.0.0", port=config.health_port) if config.health_port else None  # noqa: S104 - whoever watches over the process asks from outside
        self._running: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Connects to Slack and begins to work. Raises CannotStart; `stop` is due all the same."""
        try:
            await self.receiver.start()
            if self._page is not None:
                await self._page.start()
        except ChatError as error:
            raise _turned_away(error, "SLACK_APP_TOKEN", "Basic Information, App-Level Tokens") from None
        except OSError as error:
            raise CannotStart(f"{error.strerror or error}. Set another port.") from None
        self._running = [asyncio.create_task(loop.run(), name=type(loop).__name__) for loop in self.loops]
        for helper, work in ((self.health, self.health.watch()), (self._retention, self._retention.run())):
            self._running.append(asyncio.create_task(work, name=type(helper).__name__))
        logger.info("Pagehand is at work as %s", self.owner)

    async def stop(self) -> None:
        """Takes nothing new, ends or hands back what is under way, and closes everything; within 10 s."""
        logger.info("stopping")
        until = asyncio.get_running_loop().time() + STOP_LIMIT
        await self.receiver.stop(STOP_LIMIT / 3)
        await asyncio.gather(*(loop.stop(until - asyncio.get_running_loop().time()) for loop in self.loops))
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(1.0):
                await self._edges.store.transact(lambda tx: tx.release(self.owner))
        if self._page is not None:
            await self._page.stop()
        await self._edges.closing.aclose()
        logger.info("stopped")

    def wake(self) -> None:
        """There may be work for any loop now."""
        for loop in self.loops:
            loop.wake()

    def _build_loops(self, config: Config, edges: Edges) -> tuple[Loop[Any], ...]:
        limit = config.job_api_timeout
        calls = Terms(self.owner, SteadyClock(), limit + LEASE_MARGIN, limit + 1, self.wake)
        chat = replace(calls, lease=CHAT_LEASE, call_limit=CHAT_LIMIT)
        polling = Polling(fastest=config.poll_fastest, slowest=config.poll_slowest)
        return (
            Intake(edges.store, edges.job_api, calls, polling=polling, asks_once=config.job_api_idempotent),
            Watch(edges.store, edges.job_api, calls, polling=polling),
            Outbox(edges.store, edges.chat, chat),
        )

    def _build_receiver(self, config: Config, slack: SlackApp) -> Receiver:
        if config.slack_app_token is not None:
            client = new_client(
                config.slack_app_token.get_secret_value(), self._edges.session, base_url=f"{config.slack_api_url}/"
            )
            return SocketReceiver(slack, client, config.slack_app_token)
        secret = config.slack_signing_secret or SecretStr("")
        return HttpReceiver(slack, secret, host="0.0.0.0", port=config.port, health=self.health.state)  # noqa: S104 - Slack calls from outside

    def _parts(self) -> Iterator[Part]:
        for loop in self.loops:
            yield Part(type(loop).__name__.lower(), loop.failing_for(), str(loop.failing_why))
        if isinstance(self.receiver, SocketReceiver):
            yield Part("slack connection", self.receiver.health().down_seconds, "no connection is open")


async def run(config: Config, *, decorate: Callable[[Edges], None] = lambda _: None) -> None:
    """Runs the bot until SIGTERM or Ctrl-C. `decorate` may wrap the edges before anything is built on them."""
    stopped = asyncio.Event()
    starting = asyncio.create_task(_started(config, decorate))

    def stop() -> None:
        stopped.set()
        starting.cancel()  # without effect once it has started

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    try:
        app = await starting
    except asyncio.CancelledError:
        if stopped.is_set():
            return
        raise
    await stopped.wait()
    await app.stop()


async def _started(config: Config, decorate: Callable[[Edges], None]) -> App:
    edges = await open_edges(config)
    decorate(edges)
    app = App(config, edges)
    try:
        await app.start()
    except BaseException:
        await app.stop()
        raise
    return app


async def _identified(client: AsyncWebClient) -> Identity:
    """Asks Slack who we are, for as long as Slack can't be reached. Raises CannotStart for a bad token."""
    pause = 1.0
    while True:
        try:
            return await identify(client)
        except (ChatUnreachable, ChatUncertain) as error:
            if pause == 1.0:
                words = "Slack can't be reached (%s), trying on. Check this machine's network and SLACK_API_URL."
                logger.warning(words, error.reason)
            await asyncio.sleep(pause)
            pause = min(2 * pause, SLOWEST_START)
        except ChatError as error:
            raise _turned_away(error, "SLACK_BOT_TOKEN", "OAuth & Permissions") from None


def _turned_away(error: ChatError, name: str, where: str) -> CannotStart:
    return CannotStart(
        f"Slack does not accept {name} ({error.reason}). Check it, and its scopes, on your app's page at "
        f"api.slack.com/apps, under {where}."
    )


async def _open_store(config: Config) -> Store:
    """Opens the database; one that is new, or SQLite's own, is brought to the current schema first."""
    url = config.database_url.get_secret_value()
    state = await schema_state(url)
    if state is SchemaState.EMPTY or (state is SchemaState.OLDER and url.startswith("sqlite")):
        await migrate(url)
    elif state is SchemaState.OLDER:
        raise SchemaMismatch("The database's tables are older than this Pagehand: run `pagehand migrate` first.")
    return await open_store(url)


def _job_api_settings(config: Config) -> JobApiSettings:
    return JobApiSettings(
        base_url=config.job_api_url,
        api_key=config.job_api_key,
        get_path=config.job_api_get_path,
        timeout=config.job_api_timeout,
    )
