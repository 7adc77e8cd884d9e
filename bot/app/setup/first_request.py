"""Posts a message in a channel and waits for Slack's signed HTTP request about it, at the port of `pagehand run`."""

import asyncio
import json
import time
from collections.abc import Sequence

from aiohttp import web
from slack_sdk.web.async_client import AsyncWebClient

from bot.app.setup.first_message import ARRIVED, post_first_message
from bot.domain.findings import Finding
from bot.runtime.http.server import HttpServer, listening_socket
from bot.runtime.json_fields import object_at, text_at
from bot.slack.receiving.transports.http_receiver import EVENTS_PATH, MAX_BODY, is_signed

_WHY = "Nothing that people do in Slack arrives."


async def hear_first_request(
    bot: AsyncWebClient, secrets: Sequence[str], channel: str, address: tuple[str, int], patience: float
) -> list[Finding]:
    """Posts in a channel, and waits for the request with the event.

    Args:
        bot: Calls with the bot token.
        secrets: The signing secrets.
        channel: Where to post: an id, or #name.
        address: The host and port to listen on.
        patience: How many seconds to wait.
    """
    listener = _Listener(secrets)
    application = web.Application(client_max_size=MAX_BODY)
    application.router.add_post(EVENTS_PATH, listener.answer)
    server = HttpServer(application)
    try:
        await server.start(listening_socket(*address))
    except OSError as error:
        fix = "Stop what uses this port, or set PORT to another one, to which the address leads."
        return [Finding.error(ARRIVED, f"Setup {error.strerror}.", why=_WHY, fix=fix)]
    try:
        posted = await post_first_message(bot, channel)
        if not posted.ts:
            return [posted.finding]
        has_arrived = await listener.hears(posted.channel_id, posted.ts, patience)
        return [posted.finding, _result(listener, has_arrived=has_arrived, port=address[1])]
    finally:
        await server.stop()


class _Listener:
    """Answers Slack's checks of the address, and acknowledges bots' messages, which Pagehand ignores. All else is
    refused, so that Slack sends it again, to the bot.
    """

    def __init__(self, secrets: Sequence[str]) -> None:
        self._secrets = secrets
        self._heard: set[tuple[str, str]] = set()
        self._changed = asyncio.Event()
        self.has_bad_signatures = False

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        timestamp = request.headers.get("X-Slack-Request-Timestamp", "")
        signature = request.headers.get("X-Slack-Signature", "")
        if not any(is_signed(secret, timestamp, signature, body, now=time.time()) for secret in self._secrets):
            self.has_bad_signatures = True
            raise web.HTTPUnauthorized(text="not signed by Slack")
        try:
            payload = json.loads(body)
        except ValueError:
            raise web.HTTPServiceUnavailable(text="Pagehand is being set up") from None
        if text_at(payload, "type") == "url_verification":
            return web.json_response({"challenge": text_at(payload, "challenge")})
        event = object_at(payload, "event")
        if not text_at(event, "bot_id"):
            raise web.HTTPServiceUnavailable(text="Pagehand is being set up")
        self._heard.add((text_at(event, "channel"), text_at(event, "ts")))
        self._changed.set()
        return web.Response()

    async def hears(self, channel_id: str, ts: str, patience: float) -> bool:
        """Waits for the event of a message, which can arrive before Slack has answered the call that posted it."""
        try:
            async with asyncio.timeout(patience):
                while (channel_id, ts) not in self._heard:
                    await self._changed.wait()
                    self._changed.clear()
        except TimeoutError:
            return False
        return True


def _result(listener: _Listener, *, has_arrived: bool, port: int) -> Finding:
    if has_arrived:
        return Finding.ok(ARRIVED, "The message arrived here: Slack's signed requests reach this machine.")
    if listener.has_bad_signatures:
        found = "A request arrived that is not signed with SLACK_SIGNING_SECRET."
        fix = "Copy the Signing Secret again: Basic Information, App Credentials (not the Client Secret)."
        return Finding.error(ARRIVED, found, why=_WHY, fix=fix)
    fix = (
        f"The address has to lead to port {port} of this machine. At api.slack.com/apps, choose your app and then "
        "Event Subscriptions: the Request URL has to be Verified (while Setup waits, or while Pagehand runs), and "
        "message.channels has to be under Subscribe to bot events. Where the bot will run elsewhere, leave this out."
    )
    return Finding.error(ARRIVED, "The message was posted, but no request came.", why=_WHY, fix=fix)
