"""Receives over Socket Mode: several connections, each kept open by opening a new one in time."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr
from slack_bolt.adapter.socket_mode.async_internals import send_async_response
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ChatError, ChatNotAllowed, ChatRefused, ChatUnreachable
from bot.slack.app import SlackApp
from bot.slack.receiving.connection import Connection, Envelope

logger = logging.getLogger(__name__)

SLOWEST_RETRY = 30.0
LONG_OUTAGE = 300.0
_MOST_WAITING = 2_000
_RETIRING_SECONDS = 5.0
_SHORT_LIFE = 5.0
_OK = 200


@dataclass(frozen=True)
class SocketHealth:
    """How many connections are open of how many wanted, and for how many seconds there has been none."""

    connected: int
    wanted: int
    down_seconds: float

    @property
    def ok(self) -> bool:
        """Whether Slack can reach Pagehand, or could a moment ago."""
        return self.down_seconds < LONG_OUTAGE


class SocketReceiver:
    """Two connections by default, so that Slack's regular refreshes leave no gap. Slack allows ten.

    `client` makes the calls that open connections, with `app_token` (it begins with xapp-). At most `at_once`
    envelopes are worked on at the same time.
    """

    def __init__(
        self,
        app: SlackApp,
        client: AsyncWebClient,
        app_token: SecretStr,
        *,
        connections: int = 2,
        at_once: int = 64,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._client = client
        self._app_token = app_token
        self._open: list[Connection | None] = [None] * connections
        self._at_once = asyncio.Semaphore(at_once)
        self._monotonic = monotonic
        self._stopping = asyncio.Event()
        self._keepers: list[asyncio.Task[None]] = []
        self._work: set[asyncio.Task[Any]] = set()
        self._retiring: set[asyncio.Task[Any]] = set()
        self._down_since: float | None = monotonic()
        self._down_told = False
        self._trouble = ""

    def health(self) -> SocketHealth:
        """How it is going."""
        down = 0.0 if self._down_since is None else self._monotonic() - self._down_since
        return SocketHealth(self._connected(), len(self._open), down)

    async def start(self) -> None:
        """Connects. Raises ChatNotAllowed or ChatRefused where Slack does not take the app's token; where Slack can't
        be reached, it goes on trying by itself.
        """
        tries = await asyncio.gather(*(self._connect() for _ in self._open), return_exceptions=True)
        fatal = [error for error in tries if isinstance(error, BaseException) and not _may_pass(error)]
        if fatal:
            await asyncio.gather(*(made.close() for made in tries if isinstance(made, Connection)))
            raise fatal[0]
        for slot, made in enumerate(tries):
            if isinstance(made, Connection):
                self._opened(slot, made)
            else:
                self._failed(made)
            self._keepers.append(asyncio.create_task(self._keep(slot)))

    async def stop(self, timeout: float) -> None:  # noqa: ASYNC109 - one deadline for all that is in flight
        """Takes nothing new (Slack brings it again, elsewhere or later), finishes what was begun, and disconnects."""
        self._stopping.set()
        until = asyncio.get_running_loop().time() + timeout
        await _cancelled(self._keepers)
        if self._work:
            await asyncio.wait(set(self._work), timeout=timeout)
        await _cancelled(self._work)
        await self._app.drain(max(until - asyncio.get_running_loop().time(), 0.0))
        await _cancelled(self._retiring)
        await asyncio.gather(*(made.close() for made in self._open if made is not None), return_exceptions=True)

    # -- keeping connections open ---------------------------------------------------------------------------------

    async def _keep(self, slot: int) -> None:
        """Waits for a connection's end and opens the next one before closing it, for ever."""
        hasty = 0
        while True:
            since, current = time.monotonic(), self._open[slot]
            if current is not None:
                await current.ended()
                await self._drop_lost(slot)
            hasty = hasty + 1 if time.monotonic() - since < _SHORT_LIFE else 0
            if hasty > 1:
                self._failed(ChatUnreachable(f"closed at once: {current.farewell if current else 'lost'}"))
                await asyncio.sleep(_pause(hasty - 1))
            made = await self._reconnect(slot)
            leaving = self._open[slot]
            self._opened(slot, made)
            if leaving is not None:
                self._spawn(self._retire(leaving), self._retiring)

    async def _reconnect(self, slot: int) -> Connection:
        """Tries until a connection opens, ever more slowly."""
        failures = 0
        while True:
            try:
                return await self._connect()
            except Exception as error:  # noqa: BLE001 - whatever it is, giving up would leave Pagehand deaf
                failures += 1
                await self._drop_lost(slot)
                self._failed(error)
                asked = error.retry_after if isinstance(error, ChatUnreachable) else None
            await asyncio.sleep(max(asked or 0.0, _pause(failures)))

    async def _connect(self) -> Connection:
        made = Connection(self._client, self._app_token.get_secret_value(), self._received)
        await made.open()
        return made

    async def _drop_lost(self, slot: int) -> None:
        """Forgets a connection that is gone; one that Slack is about to close serves till then."""
        current = self._open[slot]
        if current is not None and not await current.is_connected():
            self._open[slot] = None
            self._note_down()
            await current.close()

    async def _retire(self, connection: Connection) -> None:
        """Closes a connection once what came through it is answered, or Slack has closed it."""
        mine = {task for task in self._work if task.get_name() == _name(connection)}
        try:
            if mine:
                await asyncio.wait(mine, timeout=_RETIRING_SECONDS)
        finally:
            await connection.close()

    def _opened(self, slot: int, made: Connection) -> None:
        self._open[slot] = made
        if self._trouble:
            logger.info("a connection to Slack is open again: %d of %d", self._connected(), len(self._open))
        self._trouble, self._down_since, self._down_told = "", None, False

    def _failed(self, error: object) -> None:
        """Logs the first failure of each kind, and a long outage once."""
        reason = error.reason if isinstance(error, ChatError) else type(error).__name__
        self._note_down()
        if reason != self._trouble:
            self._trouble = reason
            logger.warning(
                "a connection to Slack can't be opened (%s); %d of %d are open; trying on",
                reason,
                self._connected(),
                len(self._open),
            )
        if not self._down_told and self.health().down_seconds >= LONG_OUTAGE:
            self._down_told = True
            logger.error("Slack can't be reached (%s) for 5 minutes: Pagehand hears nothing", reason)

    def _note_down(self) -> None:
        if self._connected() == 0 and self._down_since is None:
            self._down_since = self._monotonic()

    def _connected(self) -> int:
        return sum(made is not None and not made.closed for made in self._open)

    # -- envelopes ------------------------------------------------------------------------------------------------

    def _received(self, connection: Connection, envelope: Envelope) -> None:
        """Starts work on an envelope. What is left alone here is not acknowledged, so Slack brings it again."""
        if self._stopping.is_set():
            return
        if len(self._work) >= _MOST_WAITING:
            logger.warning("an envelope is left for Slack to bring again: %d are waiting", len(self._work))
            return
        self._spawn(self._take(connection, envelope), self._work, _name(connection))

    async def _take(self, connection: Connection, envelope: Envelope) -> None:
        payload = envelope.get("payload")
        if not isinstance(payload, dict):
            logger.warning("an envelope without a payload is acknowledged and left alone")
            payload = {}
        async with self._at_once:
            answer = await self._app.take_payload(payload)
        if answer.status != _OK:
            return
        request = SocketModeRequest(type="", envelope_id=envelope["envelope_id"], payload=payload)
        try:
            await send_async_response(connection, request, answer, time.time())
        except Exception as error:  # noqa: BLE001 - whatever broke, the answer did not get out
            logger.info("an acknowledgement did not reach Slack (%s)", type(error).__name__)

    def _spawn(self, work: Coroutine[Any, Any, None], kept: set[asyncio.Task[Any]], name: str | None = None) -> None:
        task = asyncio.create_task(work, name=name)
        kept.add(task)
        task.add_done_callback(kept.discard)


def _name(connection: Connection) -> str:
    return f"slack-envelope-{id(connection)}"


def _pause(failures: int) -> float:
    """Seconds: 1, 2, 4, ... up to SLOWEST_RETRY."""
    return min(2.0 ** min(failures - 1, 6), SLOWEST_RETRY)


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, ChatError) and not isinstance(error, (ChatNotAllowed, ChatRefused))


async def _cancelled(tasks: "set[asyncio.Task[Any]] | list[asyncio.Task[None]]") -> None:
    waiting = list(tasks)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
