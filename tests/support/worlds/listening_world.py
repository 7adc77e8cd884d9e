"""The listeners behind a real Bolt app, without Slack: what comes in, and how the service is called."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import aiohttp
from slack_bolt.response import BoltResponse
from support.fakes.recording_service import RecordingService

from bot.ports.service import ServicePort
from bot.slack.receiving.modal_opener import ModalEdges
from bot.slack.receiving.slack_app import SlackApp
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.conversations import Permalinks, SlackConversations
from bot.slack.sending.ephemeral import EphemeralSender
from bot.slack.sending.identity import Identity
from bot.slack.sending.people import SlackPeople
from bot.slack.sending.views import SlackViews
from bot.slack.sending.web_api import SlackClient, new_session

FORM, JSON = "application/x-www-form-urlencoded", "application/json"
BOT = "U0BOT"
IDENTITY = Identity(team_id="T1", team="Team", bot_user_id=BOT, bot_id="B0BOT")


@dataclass
class ListeningWorld:
    """A service and the app that calls it."""

    service: RecordingService
    app: SlackApp

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


def slack_app(
    service: ServicePort, session: aiohttp.ClientSession, identity: Identity = IDENTITY, **options: Any
) -> SlackApp:
    """Returns Pagehand's Slack app over a service, as if Slack could not be called."""
    client = SlackClient("xoxb-x", session, base_url="http://127.0.0.1:9/api/")
    people = SlackPeople(client)
    views = SlackViews(client, people, MessageContext(), Permalinks(client))
    return SlackApp(
        service,
        identity=identity,
        ephemeral_sender=EphemeralSender(client),
        modal_edges=ModalEdges(views, SlackConversations(client, identity, people), people),
        **{"message_context": MessageContext(bot_user_id=identity.bot_user_id), **options},
    )


@asynccontextmanager
async def listening_app(service: ServicePort, identity: Identity = IDENTITY, **options: Any) -> AsyncIterator[SlackApp]:
    """Opens it; `options` are those of `SlackApp`."""
    async with new_session() as session:
        app = slack_app(service, session, identity, **options)
        yield app
        await app.drain(1)


@asynccontextmanager
async def listening(identity: Identity = IDENTITY, **options: Any) -> AsyncIterator[ListeningWorld]:
    """Opens it over a service that keeps its calls."""
    service = RecordingService()
    async with listening_app(service, identity, **options) as app:
        yield ListeningWorld(service, app)


def as_http(payload: dict[str, Any]) -> tuple[str, str]:
    """Returns body and content type, as Slack sends this kind: events as JSON, commands as
    fields, all else in one field.
    """
    if payload.get("type") in {"event_callback", "url_verification", "app_rate_limited"}:
        return json.dumps(payload), JSON
    if "command" in payload or "ssl_check" in payload:
        return urlencode(payload), FORM
    return urlencode({"payload": json.dumps(payload)}), FORM
