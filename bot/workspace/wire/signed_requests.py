"""The HTTP requests that Slack sends to an app's request URLs: their bodies, their signature, their answers."""

import hashlib
import hmac
import json
from urllib.parse import urlencode

from bot.workspace.model.entities import Json
from bot.workspace.wire.envelopes import Ack, Envelope

JSON_TYPE = "application/json"
FORM_TYPE = "application/x-www-form-urlencoded"


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Returns Slack's ``v0`` signature of a request."""
    base = b"v0:" + timestamp.encode() + b":" + body
    return "v0=" + hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()


def signed_headers(secret: str, timestamp: str, body: bytes, content_type: str) -> dict[str, str]:
    return {
        "Content-Type": content_type,
        "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
        "X-Slack-Request-Timestamp": timestamp,
        "X-Slack-Signature": signature(secret, timestamp, body),
    }


def retry_headers(envelope: Envelope) -> dict[str, str]:
    if not envelope.attempt:
        return {}
    return {"X-Slack-Retry-Num": str(envelope.attempt), "X-Slack-Retry-Reason": envelope.reason}


def encoded_body(envelope: Envelope) -> tuple[bytes, str]:
    """Returns the body and its type: JSON for events, form fields for commands, and for presses one field of JSON."""
    if envelope.type == "events_api":
        return json.dumps(envelope.payload).encode(), JSON_TYPE
    fields = envelope.payload if envelope.type == "slash_commands" else {"payload": json.dumps(envelope.payload)}
    return urlencode(fields, errors="replace").encode(), FORM_TYPE


def read_ack_body(body: bytes) -> Ack:
    """Returns what a successful answer carries. A body that is not a JSON object is text to show."""
    text = body.decode(errors="replace")
    if not text:
        return Ack()
    try:
        parsed: object = json.loads(text)
    except (ValueError, RecursionError):
        parsed = text
    payload: Json = parsed if isinstance(parsed, dict) else {"text": text}
    return Ack(payload)
