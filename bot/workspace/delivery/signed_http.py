"""Delivery by signed HTTP requests, for apps that have a request URL instead of Socket Mode."""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from urllib.parse import urlencode

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout

from bot.workspace.delivery.deliveries import Ack, Envelope, NotDeliveredError
from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Json


class SignedHttp:
    """Posts envelopes to the app's URLs. Any 2xx status in time is an acknowledgement. `signing_secret` returns the
    current secret, which can be replaced.
    """

    def __init__(self, app: AppConfig, signing_secret: Callable[[], str], now: Callable[[], float] = time.time) -> None:
        self._app = app
        self._secret = signing_secret
        self._now = now
        self._session: ClientSession | None = None

    @property
    def connected(self) -> bool:
        """Always true: whether something listens at a URL is unknown."""
        return True

    async def wait_until_connected(self, timeout: float) -> None:  # noqa: ASYNC109 - as the protocol has it
        """Waits the whole timeout, since whether something listens at a URL is unknown."""
        await asyncio.sleep(timeout)

    async def send(self, envelope: Envelope, ack_timeout: float) -> Ack:
        body, content_type = _encoded_body(envelope)
        return await self._post(self._url(envelope), body, content_type, _retry_headers(envelope), ack_timeout)

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

    async def _post(self, url: str, body: bytes, content_type: str, more: dict[str, str], seconds: float) -> Ack:
        headers = _signed_headers(self._secret(), str(int(self._now())), body, content_type) | more
        self._session = self._session or ClientSession()
        timeout = ClientTimeout(total=seconds)
        try:
            async with self._session.post(url, data=body, headers=headers, timeout=timeout) as answer:
                return await _acknowledgement(answer)
        except TimeoutError:
            raise NotDeliveredError("http_timeout") from None
        except (ClientError, OSError, ValueError):
            raise NotDeliveredError("connection_failed") from None


async def _acknowledgement(answer: ClientResponse) -> Ack:
    if not 200 <= answer.status < 300:  # noqa: PLR2004 - any 2xx
        raise NotDeliveredError("http_error")
    return _read_ack_body(await answer.content.read(1 << 20))


def _signature(secret: str, timestamp: str, body: bytes) -> str:
    """Returns Slack's ``v0`` signature of a request."""
    base = b"v0:" + timestamp.encode() + b":" + body
    return "v0=" + hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()


def _signed_headers(secret: str, timestamp: str, body: bytes, content_type: str) -> dict[str, str]:
    return {
        "Content-Type": content_type,
        "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
        "X-Slack-Request-Timestamp": timestamp,
        "X-Slack-Signature": _signature(secret, timestamp, body),
    }


def _retry_headers(envelope: Envelope) -> dict[str, str]:
    if not envelope.attempt:
        return {}
    return {"X-Slack-Retry-Num": str(envelope.attempt), "X-Slack-Retry-Reason": envelope.reason}


def _encoded_body(envelope: Envelope) -> tuple[bytes, str]:
    """Returns the body and its type: JSON for events, form fields for commands, one form field of JSON for the rest."""
    if envelope.type == "events_api":
        return json.dumps(envelope.payload).encode(), "application/json"
    fields = envelope.payload if envelope.type == "slash_commands" else {"payload": json.dumps(envelope.payload)}
    return urlencode(fields, errors="replace").encode(), "application/x-www-form-urlencoded"


def _read_ack_body(body: bytes) -> Ack:
    """Returns the acknowledgement in a successful answer. A body that is not a JSON object is text to show."""
    text = body.decode(errors="replace")
    if not text:
        return Ack()
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError):
        parsed = text
    payload: Json = parsed if isinstance(parsed, dict) else {"text": text}
    return Ack(payload)
