"""Receives over Socket Mode: each envelope is answered on the connection that it came from."""

import asyncio
import logging
import time
from collections.abc import Callable
from http import HTTPStatus

from slack_bolt.adapter.socket_mode.async_internals import send_async_response
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.gaps import Listening
from bot.runtime.logging import ThrottledLogger
from bot.runtime.rotating_secrets import RotatingSecret
from bot.runtime.tasks import BackgroundTasks, Supervisor
from bot.slack.receiving.connection_keeper import (
    PING_INTERVAL,
    ConnectionKeeper,
    Envelope,
    SocketHealth,
    SocketModeConnection,
)
from bot.slack.receiving.payloads.payload import SlackPayload
from bot.slack.receiving.slack_app import SlackApp

logger = logging.getLogger(__name__)

_MOST_ENVELOPES = 2_000


class SocketReceiver:
    """Two connections by default, so that Slack's regular refreshes leave no gap. Slack allows ten.

    `client` makes the calls that open connections, with the current `app_token` (it begins with xapp-), and
    `supervisor` runs what keeps them open.
    """

    def __init__(
        self,
        app: SlackApp,
        client: AsyncWebClient,
        app_token: RotatingSecret,
        *,
        connections: int = 2,
        ping_interval: float = PING_INTERVAL,
        monotonic: Callable[[], float] = time.monotonic,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._app = app
        self._client = client
        self._app_token = app_token
        self._ping_interval = ping_interval
        self._stopping = False
        self._throttled_log = ThrottledLogger(logger, monotonic=monotonic)
        self._envelopes = BackgroundTasks()
        self._connections = ConnectionKeeper(
            self._new_connection,
            self._until_answered,
            connections=connections,
            monotonic=monotonic,
            supervisor=supervisor or Supervisor(),
        )

    def health(self) -> SocketHealth:
        """Returns how many connections are open, and for how long there has been none."""
        return self._connections.health()

    def listening(self) -> Listening | None:
        """Returns since when there is always a connection; None if there is none. Slack keeps nothing meanwhile."""
        health = self.health()
        if health.down_seconds > 0.0 or not health.connected:
            return None
        return Listening(-health.up_seconds, -min(health.silent_seconds, health.up_seconds))

    async def start(self) -> None:
        """Connects. Raises ChatNotAllowed or ChatRejected where Slack does not take the app's token; where Slack
        cannot be reached, it keeps trying.
        """
        await self._connections.start()

    async def stop(self, timeout: float) -> None:  # noqa: ASYNC109 - one deadline for all that is in flight
        """Takes nothing new (Slack brings it again, elsewhere or later), finishes what was begun, and disconnects."""
        self._stopping = True
        until = asyncio.get_running_loop().time() + timeout
        await self._connections.stop_replacing()
        await self._envelopes.drain(timeout)
        await self._app.drain(max(until - asyncio.get_running_loop().time(), 0.0))
        await self._connections.close()

    def _new_connection(self) -> SocketModeConnection:
        token = self._app_token.newest
        return SocketModeConnection(self._client, token, self._on_envelope, ping_interval=self._ping_interval)

    async def _until_answered(self, connection: SocketModeConnection) -> None:
        unanswered = [task for task in self._envelopes if task.get_name() == _task_name(connection)]
        if unanswered:
            await asyncio.wait(unanswered, timeout=5.0)

    def _on_envelope(self, connection: SocketModeConnection, envelope: Envelope) -> None:
        """Starts work on an envelope. Ignored ones are not acknowledged, so Slack sends them again."""
        if self._stopping:
            return
        if len(self._envelopes) >= _MOST_ENVELOPES:
            self._throttled_log.warning(
                "envelopes are left for Slack to bring again: %d are waiting", len(self._envelopes)
            )
            return
        self._envelopes.spawn(self._answer(connection, envelope), name=_task_name(connection))

    async def _answer(self, connection: SocketModeConnection, envelope: Envelope) -> None:
        payload = envelope.get("payload")
        if not isinstance(payload, dict):
            logger.warning("an envelope without a payload is acknowledged: %s", SlackPayload.read(envelope).kind)
            payload = {}
        response = await self._app.handle_payload(payload)
        if response.status != HTTPStatus.OK:
            return
        request = SocketModeRequest(type="", envelope_id=envelope["envelope_id"], payload=payload)
        try:
            await send_async_response(connection, request, response, time.time())
        except Exception as error:  # noqa: BLE001 - whatever broke, the answer did not get out
            logger.info("an acknowledgement did not reach Slack (%s)", type(error).__name__)


def _task_name(connection: SocketModeConnection) -> str:
    return f"slack-envelope-{id(connection)}"
