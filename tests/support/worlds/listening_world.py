"""The listeners behind a real Bolt app, without Slack: what comes in, and how the service is called."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from slack_bolt.response import BoltResponse
from support.fakes.ephemeral import unreachable_ephemeral, unreachable_modals
from support.fakes.recording_service import RecordingService

from bot.ports.slack import Members
from bot.slack.receiving.slack_app import SlackApp
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.ephemeral import EphemeralSender
from bot.slack.sending.identity import Identity
from bot.slack.sending.web_api import new_session

FORM, JSON = "application/x-www-form-urlencoded", "application/json"
BOT = "U0BOT"
IDENTITY = Identity(team_id="T1", team="Team", bot_user_id=BOT, bot_id="B0BOT")


@dataclass
class ListeningWorld:
    """A service and the app that calls it."""

    service: RecordingService
    app: SlackApp
    ephemeral: EphemeralSender

    async def take(self, payload: Any) -> BoltResponse:
        """Sends a payload as over Socket Mode."""
        return await self.app.handle_payload(payload)

    async def over_http(self, payload: dict[str, Any], content_type: str = "") -> BoltResponse:
        body, kind = as_http(payload)
        return await self.app.handle_http_body(body, content_type or kind)

    async def both_ways(self, payload: dict[str, Any]) -> BoltResponse:
        """Sends it over HTTP and over Socket Mode; both get the same answer."""
        over_http = await self.over_http(payload)
        asked, self.service.calls = self.service.calls, []
        over_socket = await self.take(json.loads(json.dumps(payload)))
        assert (over_http.status, over_http.body) == (over_socket.status, over_socket.body)
        assert asked == self.service.calls
        return over_http


@asynccontextmanager
async def listening(
    identity: Identity = IDENTITY,
    *,
    context: MessageContext | None = None,
    members: Members | None = None,
    recording_timeout: float = 5.0,
) -> AsyncIterator[ListeningWorld]:
    """Opens it; `recording_timeout`: seconds within which Slack gets an answer."""
    service = RecordingService()
    async with new_session() as session:
        ephemeral = unreachable_ephemeral(session)
        app = SlackApp(
            service,
            identity=identity,
            message_context=context or MessageContext(bot_user_id=BOT),
            ephemeral_sender=ephemeral,
            modal_edges=unreachable_modals(session, identity),
            members=members,
            recording_timeout=recording_timeout,
        )
        yield ListeningWorld(service, app, ephemeral)
        await app.drain(1)


def as_http(payload: dict[str, Any]) -> tuple[str, str]:
    """Returns body and content type, as Slack sends this kind: events as JSON, commands as
    fields, all else in one field.
    """
    if payload.get("type") in {"event_callback", "url_verification", "app_rate_limited"}:
        return json.dumps(payload), JSON
    if "command" in payload or "ssl_check" in payload:
        return urlencode(payload), FORM
    return urlencode({"payload": json.dumps(payload)}), FORM
