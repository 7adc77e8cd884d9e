"""Turns a message of Slack's history back into the events that Slack sent, or would have sent, when it was written,
edited or deleted.

`message` is as in an answer of conversations.history or conversations.replies: what the event has about it, with
`edited` if its author changed it, and without where it is (docs.slack.dev, "message event").
"""

from collections.abc import Mapping
from typing import Any

from bot.domain.gaps.gap import Missed
from bot.domain.people.members import ChannelInfo
from bot.ports.slack import MissedEvents
from bot.slack.receiving.slack_app import SlackApp
from bot.slack.sending.identity import Identity

RawMessage = Mapping[str, Any]


class SlackMissedEvents(MissedEvents):
    """Passes missed events to the listeners."""

    def __init__(self, app: SlackApp, identity: Identity) -> None:
        self._app = app
        self._identity = identity

    async def handle(self, missed: Missed, channel: ChannelInfo) -> None:
        """See MissedEvents."""
        message = missed.message.raw
        if missed.written:
            await self._app.handle_past(written(message, channel, self._identity), missed.arrival)
        if missed.edited:
            await self._app.handle_past(changed(message, channel, self._identity), missed.arrival)


def written(message: RawMessage, channel: ChannelInfo, identity: Identity) -> dict[str, Any]:
    """Returns the event about a new message. After an edit it has the new words, since Slack keeps no others."""
    event = {key: value for key, value in message.items() if key != "edited"}
    return _payload({**event, "event_ts": message.get("ts")}, channel, identity)


def changed(message: RawMessage, channel: ChannelInfo, identity: Identity) -> dict[str, Any]:
    """Returns the event about the last edit, without the words before it; for an unedited message, the event has no
    `ts` and is left alone.
    """
    edited = message.get("edited")
    at = edited.get("ts") if isinstance(edited, dict) else None
    event = {"subtype": "message_changed", "hidden": True, "message": dict(message), "ts": at, "event_ts": at}
    return _payload(event, channel, identity)


def deleted(
    message_ts: str, channel: ChannelInfo, identity: Identity, *, at: str, thread_ts: str = ""
) -> dict[str, Any]:
    """Returns the event about a deletion, which was noticed `at` a `ts`. Nobody knows who wrote the message."""
    event: dict[str, Any] = {"subtype": "message_deleted", "hidden": True, "deleted_ts": message_ts}
    if thread_ts:
        event["previous_message"] = {"ts": message_ts, "thread_ts": thread_ts}
    return _payload({**event, "ts": at, "event_ts": at}, channel, identity)


def _payload(event: dict[str, Any], channel: ChannelInfo, identity: Identity) -> dict[str, Any]:
    kind = "im" if channel.is_direct else "group" if channel.is_private else "channel"
    return {
        "type": "event_callback",
        "team_id": identity.team_id,
        "api_app_id": identity.app_id,
        "is_ext_shared_channel": channel.is_shared_outside,
        "event": {**event, "type": "message", "channel": channel.id, "channel_type": kind},
    }
