"""Posts a message in a channel and watches it arrive, to prove that Slack's events reach this machine."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.findings import Finding
from bot.errors import ChatError, ChatNotInChannel, ChatRejected
from bot.runtime.json_fields import object_at, text_at
from bot.slack.sending.identity import identify
from bot.slack.sending.web_api import call

POSTED, ARRIVED, SAME_APP, OTHERS = "setup.post", "setup.arrival", "setup.same_app", "setup.other_instances"
TEXT = "Pagehand is being set up. This message checks that it hears this channel; you can delete it."
PATIENCE = 10.0
"""Seconds. Slack delivers an event within one or two."""
_WHY = "Nothing that people write there arrives."
_INVITE = "Write `/invite @Pagehand` in that channel, and run this again."


@dataclass(frozen=True)
class FirstMessage:
    """A message by its channel's id and its `ts`, which is empty if it could not be posted, and what is to be said."""

    finding: Finding
    channel_id: str = ""
    ts: str = ""


@dataclass(frozen=True)
class _Greeting:
    app_id: str
    connections: int


async def post_first_message(bot: AsyncWebClient, channel: str) -> FirstMessage:
    """Posts in a channel, given by its id or as #name; joins it before if it is public and given by its id."""
    with contextlib.suppress(ChatRejected, ChatNotInChannel):  # private, or no scope: it may be a member all the same
        await call(bot.conversations_join(channel=channel))
    try:
        answer = await call(bot.chat_postMessage(channel=channel, text=TEXT))
    except ChatNotInChannel:
        found = f"Pagehand is not a member of {channel}."
        return FirstMessage(Finding.error(POSTED, found, why="It cannot post there.", fix=_INVITE))
    except ChatError as error:
        fix = f"Slack shows a channel's id at the end of its details. If it is private: {_INVITE}"
        found = f"Nothing could be posted in {channel} ({error.reason})."
        return FirstMessage(Finding.error(POSTED, found, why="Pagehand could not answer there.", fix=fix))
    posted = Finding.ok(POSTED, f"A message was posted in {channel}.")
    return FirstMessage(posted, text_at(answer, "channel"), text_at(answer, "ts"))


async def hear_first_message(
    bot: AsyncWebClient,
    app: AsyncWebClient,
    session: aiohttp.ClientSession,
    channel: str,
    patience: float,
) -> list[Finding]:
    """Posts in a channel, and waits for the event on a Socket Mode connection of its own.

    Args:
        bot: Calls with the bot token.
        app: Calls with the app-level token.
        session: Makes the connection.
        channel: Where to post: an id, or #name.
        patience: How many seconds to wait.
    """
    try:
        async with _connection(app, session) as socket:
            greeting = await _greeting(socket, patience)
            if fault := await _other_app(bot, greeting):
                return [fault]
            posted = await post_first_message(bot, channel)
            if not posted.ts:
                return [posted.finding]
            has_arrived = await _arrives(socket, posted, patience)
    except (ChatError, aiohttp.ClientError, TimeoutError) as error:
        found = f"No Socket Mode connection could be opened ({getattr(error, 'reason', type(error).__name__)})."
        fix = "Check that this machine may connect to wss-primary.slack.com, and HTTPS_PROXY."
        return [Finding.error(ARRIVED, found, why=_WHY, fix=fix, passing=True)]
    return [posted.finding, *_result(greeting, has_arrived=has_arrived)]


@contextlib.asynccontextmanager
async def _connection(
    app: AsyncWebClient, session: aiohttp.ClientSession
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    answer = await call(app.apps_connections_open(app_token=app.token or ""))
    async with session.ws_connect(text_at(answer, "url"), proxy=app.proxy) as socket:
        yield socket


async def _frames(socket: aiohttp.ClientWebSocketResponse) -> AsyncIterator[Mapping[str, Any]]:
    async for frame in socket:
        if frame.type is aiohttp.WSMsgType.TEXT:
            with contextlib.suppress(ValueError):
                yield json.loads(frame.data)


async def _greeting(socket: aiohttp.ClientWebSocketResponse, patience: float) -> _Greeting:
    async with asyncio.timeout(patience):
        async for message in _frames(socket):
            if message.get("type") == "hello":
                connections = message.get("num_connections")
                app_id = text_at(message, "connection_info", "app_id")
                return _Greeting(app_id, connections if isinstance(connections, int) else 1)
    raise TimeoutError


async def _arrives(socket: aiohttp.ClientWebSocketResponse, posted: FirstMessage, patience: float) -> bool:
    """Waits for the event of a message, and acknowledges that one only: Slack sends the others again, to the bot."""
    try:
        async with asyncio.timeout(patience):
            async for message in _frames(socket):
                event = object_at(object_at(message, "payload"), "event")
                if (event.get("type"), event.get("channel"), event.get("ts")) == (
                    "message",
                    posted.channel_id,
                    posted.ts,
                ):
                    await socket.send_json({"envelope_id": message.get("envelope_id")})
                    return True
    except TimeoutError:
        return False
    return False


async def _other_app(bot: AsyncWebClient, greeting: _Greeting) -> Finding | None:
    app_id = (await identify(bot)).app_id
    if not app_id or not greeting.app_id or app_id == greeting.app_id:
        return None
    found = f"SLACK_APP_TOKEN is of another app ({greeting.app_id}) than SLACK_BOT_TOKEN ({app_id})."
    fix = f"Take both from https://api.slack.com/apps/{app_id}: OAuth & Permissions, and Basic Information."
    return Finding.error(SAME_APP, found, why="What people write arrives at one app, and the other answers.", fix=fix)


def _result(greeting: _Greeting, *, has_arrived: bool) -> list[Finding]:
    others = greeting.connections - 1
    if has_arrived and not others:
        return [Finding.ok(ARRIVED, "The message arrived here: Slack's events reach this machine.")]
    if others:
        arrival = "The message arrived here, but" if has_arrived else "The message did not arrive here:"
        more = f"{others} more {'connection' if others == 1 else 'connections'}"
        found = f"{arrival} another instance of this app is connected ({more})."
        why = (
            "Slack sends each request to one of them: instances with different databases or settings answer at random."
        )
        fix = "Stop the other one, or create another app for this one (`pagehand setup` without --app-id)."
        kind = Finding.warning if has_arrived else Finding.error
        return [kind(OTHERS, found, why=why, fix=fix)]
    fix = (
        "At api.slack.com/apps, choose your app and then Event Subscriptions: Enable Events has to be on, and "
        "message.channels under Subscribe to bot events. Then reinstall the app: Install App, Reinstall to Workspace."
    )
    return [Finding.error(ARRIVED, "The message was posted, but its event did not arrive.", why=_WHY, fix=fix)]
