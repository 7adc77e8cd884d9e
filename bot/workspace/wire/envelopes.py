"""Envelopes around payloads, and the frames of Socket Mode."""

import json
from dataclasses import dataclass, field
from typing import Literal

from bot.workspace.model.entities import Json

EnvelopeType = Literal["events_api", "slash_commands", "interactive"]


@dataclass(frozen=True)
class Envelope:
    """One attempt to send a payload.

    Args:
        id: The same for all attempts.
        type: Slack's name for the kind of payload.
        payload: The payload.
        attempt: 0 for the first.
        reason: Slack's reason for the retry.
    """

    id: str
    type: EnvelopeType
    payload: Json
    attempt: int = 0
    reason: str = ""

    @property
    def accepts_response_payload(self) -> bool:
        """Whether its acknowledgement may have a payload."""
        return self.type == "slash_commands" or self.payload.get("type") == "view_submission"


@dataclass(frozen=True)
class Ack:
    """The app's acknowledgement, with an optional payload."""

    payload: Json = field(default_factory=dict)


def envelope_frame(envelope: Envelope) -> Json:
    frame: Json = {
        "envelope_id": envelope.id,
        "payload": envelope.payload,
        "type": envelope.type,
        "accepts_response_payload": envelope.accepts_response_payload,
    }
    if envelope.type == "events_api":
        frame |= {"retry_attempt": envelope.attempt, "retry_reason": envelope.reason}
    return frame


def hello_frame(app_id: str, connections: int) -> Json:
    return {
        "type": "hello",
        "num_connections": connections,
        "connection_info": {"app_id": app_id},
    }


def read_ack_frame(text: str) -> tuple[str, Ack] | None:
    """Returns an acknowledgement and its envelope's id; None for anything else, which Slack ignores."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or not isinstance(body.get("envelope_id"), str):
        return None
    payload = body.get("payload")
    return body["envelope_id"], Ack(payload if isinstance(payload, dict) else {})
