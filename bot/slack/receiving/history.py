"""Reads Slack's history, and turns its messages back into the events that Slack sent, or would have sent, when they
were written, edited or deleted.

A message of conversations.history or conversations.replies is what the event has about it, with `edited` if its author
changed it, and without where it is (docs.slack.dev, "message event").
"""

from collections.abc import Mapping
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.gaps import Missed, PastMessage
from bot.domain.people import ChannelInfo
from bot.domain.requests.request import Reply
from bot.errors import ChatRejected
from bot.ports.slack import ChannelReader, CurrentMessages, HistoryPage, MissedEvents, PastMessages
from bot.runtime.untrusted_json import LenientModel, Objects, Text, Texts, objects_at, text_at
from bot.slack.message_parts.slack_message import SlackMessage, Ts
from bot.slack.receiving.listeners.events import STOP
from bot.slack.receiving.payloads.payload import RevisionPayload
from bot.slack.receiving.payloads.person_message import TOMBSTONE, read_edit
from bot.slack.receiving.slack_app import SlackApp
from bot.slack.sending.conversations import PAGE_SIZE, message_page, raw_messages
from bot.slack.sending.identity import Identity
from bot.slack.sending.web_api import call, next_cursor

RawMessage = Mapping[str, Any]


class ReactionOfMessage(LenientModel):
    """A reaction to a message. Slack may not list all of its `users`."""

    name: Text = ""
    users: Texts = ()


class DescribedMessage(SlackMessage):
    """A message with what tells whether there is more about it."""

    latest_reply: Ts = ""
    reactions: Objects[ReactionOfMessage] = ()


class SlackPastMessages(PastMessages):
    """Its `client` leaves Slack's limits to everything that people wait for."""

    def __init__(self, client: AsyncWebClient, identity: Identity) -> None:
        self._client = client
        granted = identity.granted_scopes
        private = ("private_channel",) if granted is None or "groups:read" in granted else ()
        self._kinds = ",".join(("public_channel", *private))

    async def messages(
        self, channel_id: str, thread_ts: str, *, oldest: str, cursor: str = ""
    ) -> HistoryPage[PastMessage]:
        """See PastMessages."""
        answer = await call(message_page(self._client, channel_id, thread_ts, oldest=oldest, cursor=cursor))
        messages = [past for raw in objects_at(answer, "messages") if (past := _past(raw)).ts]
        return HistoryPage(messages, next_cursor(answer))

    async def channels(self, cursor: str = "") -> HistoryPage[str]:
        """See PastMessages."""
        options: dict[str, Any] = {"cursor": cursor} if cursor else {}
        answer = await call(
            self._client.users_conversations(types=self._kinds, exclude_archived=True, limit=PAGE_SIZE, **options)
        )
        ids = [text_at(channel, "id") for channel in objects_at(answer, "channels")]
        return HistoryPage([channel_id for channel_id in ids if channel_id], next_cursor(answer))


def _past(raw: dict[str, Any]) -> PastMessage:
    message = DescribedMessage.read(raw)
    stops = [person for reaction in message.reactions if reaction.name == STOP for person in reaction.users]
    return PastMessage(
        ts=message.ts,
        author_id=message.user,
        text=message.text,
        edited_at=message.edited.ts,
        latest_reply=message.latest_reply,
        stops=tuple(dict.fromkeys(stops)),
        raw=raw,
    )


class SlackCurrentMessages(CurrentMessages):
    """One per process. `identity` is ours in Slack."""

    def __init__(self, client: AsyncWebClient, identity: Identity, channels: ChannelReader) -> None:
        self._client = client
        self._identity = identity
        self._channels = channels

    async def versions(self, channel_id: str, thread_ts: str, *, since_ts: str) -> Mapping[str, Reply | None]:
        """See CurrentMessages. Reads at most 5,000 messages."""
        channel = await self._channels.channel(channel_id)
        versions: dict[str, Reply | None] = {}
        try:
            since = raw_messages(self._client, channel_id, thread_ts, all_or_none=True, oldest=since_ts, inclusive=True)
            async for raw in since:
                message = SlackMessage.read(raw)
                if message.subtype != TOMBSTONE:
                    versions[message.ts] = self._edit(raw, channel) if message.edited.ts else None
        except ChatRejected as rejected:
            if rejected.reason != "thread_not_found":
                raise
        return versions

    def _edit(self, raw: RawMessage, channel: ChannelInfo) -> Reply | None:
        payload = RevisionPayload.read(changed(raw, channel, self._identity))
        edit = read_edit(payload, self._identity, concerns_us=True)
        return None if edit is None else edit[1]


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


def _payload(event: dict[str, Any], channel: ChannelInfo, identity: Identity) -> dict[str, Any]:
    kind = "im" if channel.is_direct else "group" if channel.is_private else "channel"
    return {
        "type": "event_callback",
        "team_id": identity.team_id,
        "api_app_id": identity.app_id,
        "is_ext_shared_channel": channel.is_shared_outside,
        "event": {**event, "type": "message", "channel": channel.id, "channel_type": kind},
    }
