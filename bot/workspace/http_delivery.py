"""Delivery by signed HTTP requests, for apps that have a request URL instead of Socket Mode."""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from urllib.parse import urlencode

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout

from bot.workspace.app_config import AppConfig
from bot.workspace.deliveries import Ack, Envelope, NotDeliveredError
from bot.workspace.models import Json

JSON_TYPE = "application/json"
FORM_TYPE = "application/x-www-form-urlencoded"
_MAX_ANSWER = 1 << 20


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Slack's ``v0`` signature of a request."""
    base = b"v0:" + timestamp.encode() + b":" + body
    return "v0=" + hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()


class HttpDelivery:
    """Posts envelopes to the app's URLs. Any 2xx within the time is the acknowledgement."""

    def __init__(self, app: AppConfig, signing_secret: str, now: Callable[[], float] = time.time) -> None:
        self._app = app
        self._secret = signing_secret
        self._now = now
        self._session: ClientSession | None = None

    async def available(self, within: float) -> None:
        """A URL can't tell that something listens: wait the time out."""
        await asyncio.sleep(within)

    async def send(self, envelope: Envelope, ack_within: float) -> Ack:
        body, content_type = _body(envelope)
        headers = {}
        if envelope.attempt:
            headers = {"X-Slack-Retry-Num": str(envelope.attempt), "X-Slack-Retry-Reason": envelope.reason}
        return await self._post(self._url(envelope), body, content_type, headers, ack_within)

    async def verify_url(self, ack_within: float = 3.0) -> bool:
        """Send ``url_verification``; True when the app gave the challenge back."""
        challenge = hashlib.sha256(str(self._now()).encode()).hexdigest()[:40]
        payload = {"type": "url_verification", "challenge": challenge, "token": ""}
        url = self._app.request_url or ""
        try:
            ack = await self._post(url, json.dumps(payload).encode(), JSON_TYPE, {}, ack_within)
        except NotDeliveredError:
            return False
        return challenge in (ack.payload.get("challenge"), ack.payload.get("text"))

    async def close(self) -> None:
        if self._session:
            await self._session.close()

    def _url(self, envelope: Envelope) -> str:
        if envelope.type == "slash_commands":
            command = self._app.command(envelope.payload["command"])
            return (command and command.url) or self._app.request_url or ""
        if envelope.type == "interactive":
            return self._app.interactivity_url or self._app.request_url or ""
        return self._app.request_url or ""

    async def _post(self, url: str, body: bytes, content_type: str, headers: dict[str, str], seconds: float) -> Ack:
        timestamp = str(int(self._now()))
        signed = {
            "Content-Type": content_type,
            "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
            "X-Slack-Request-Timestamp": timestamp,
            "X-Slack-Signature": signature(self._secret, timestamp, body),
        }
        self._session = self._session or ClientSession()
        timeout = ClientTimeout(total=seconds)
        try:
            async with self._session.post(url, data=body, headers=signed | headers, timeout=timeout) as answer:
                return await _acknowledgement(answer)
        except TimeoutError:
            raise NotDeliveredError("http_timeout") from None
        except (ClientError, OSError, ValueError):
            raise NotDeliveredError("connection_failed") from None


def _body(envelope: Envelope) -> tuple[bytes, str]:
    """Events travel as JSON, commands as form fields, presses as one form field that holds JSON."""
    if envelope.type == "events_api":
        return json.dumps(envelope.payload).encode(), JSON_TYPE
    fields = envelope.payload if envelope.type == "slash_commands" else {"payload": json.dumps(envelope.payload)}
    return urlencode(fields, errors="replace").encode(), FORM_TYPE


async def _acknowledgement(answer: ClientResponse) -> Ack:
    retry = answer.headers.get("X-Slack-No-Retry") != "1"
    if not 200 <= answer.status < 300:  # noqa: PLR2004 - any 2xx
        raise NotDeliveredError("http_error", retry=retry)
    text = (await answer.content.read(_MAX_ANSWER)).decode(errors="replace")
    if not text:
        return Ack()
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError):
        parsed = text
    payload: Json = parsed if isinstance(parsed, dict) else {"text": text}
    return Ack(payload)
