"""Builds the Events API's payloads for changes."""

from collections.abc import Iterator
from uuid import uuid4

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Change, Channel, Json, Message
from bot.workspace.model.state import State
from bot.workspace.model.views import OpenViews
from bot.workspace.wire.rendering import Renderer
from bot.workspace.wire.views import rendered_view

SCOPE_OF_EVENT: dict[str, str | None] = {
    "app_home_opened": None,
    "app_mention": "app_mentions:read",
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.im": "im:history",
    "reaction_added": "reactions:read",
    "reaction_removed": "reactions:read",
}
"""The scope that an event needs, if any. The scopes of other events depend on the kind of channel."""

_NOT_IN_MENTIONS = frozenset({"type", "subtype", "channel_type", "root"})
"""The fields of the message that an ``app_mention`` leaves out."""


class EventPayloads:
    """Builds payloads for the events that the app subscribed to, in channels that it is in and may read.

    Args:
        state: The workspace.
        app: The app.
        renderer: Renders messages for the app.
        views: The Home tabs.
    """

    def __init__(self, state: State, app: AppConfig, renderer: Renderer, views: OpenViews) -> None:
        self._state = state
        self._app = app
        self._renderer = renderer
        self._views = views

    def for_change(self, change: Change) -> Iterator[Json]:
        """Yields the ``event_callback`` payloads for a change, each with its own id."""
        channel = self._state.channels[change.channel]
        for subscription, event in self._events(change, channel):
            if self._subscribed(subscription, channel):
                yield self._callback(event, channel, change)

    def _subscribed(self, subscription: str, channel: Channel) -> bool:
        scope = SCOPE_OF_EVENT.get(subscription, f"{channel.scope_family}:read")
        return subscription in self._app.events and (scope is None or scope in self._app.scopes)

    def _events(self, change: Change, channel: Channel) -> Iterator[tuple[str, Json]]:
        if self._app.bot_user_id not in channel.members:
            return
        message = change.message
        match change.kind:
            case "message_posted" if message:
                yield from self._posted(message, channel)
            case "message_changed" | "message_deleted" if message:
                yield _message_subscription(channel), self._rewritten(change, message, channel)
            case "reaction_added" | "reaction_removed" if message:
                yield change.kind, _reaction(change, message)
            case "member_joined":
                yield "member_joined_channel", self._joined(change, channel)
            case "home_opened":
                yield "app_home_opened", self._home(change)

    def _home(self, change: Change) -> Json:
        event: Json = {"type": "app_home_opened", "user": change.actor, "channel": change.channel, "tab": change.name}
        if change.name == "home" and (view := self._views.home(change.actor)):
            event["view"] = rendered_view(view, self._state.team, self._app)
        return event | {"event_ts": change.at}

    def _posted(self, message: Message, channel: Channel) -> Iterator[tuple[str, Json]]:
        event = self._renderer.message(message) | self._place(channel, message.ts)
        event |= self._foreign_fields(message)
        yield _message_subscription(channel), event
        mentioned = f"<@{self._app.bot_user_id}>" in message.text and message.user != self._app.bot_user_id
        if mentioned and not channel.is_im and message.subtype not in {"channel_join", "channel_leave"}:
            mention = {key: value for key, value in event.items() if key not in _NOT_IN_MENTIONS}
            yield "app_mention", {"type": "app_mention", **mention}

    def _foreign_fields(self, message: Message) -> Json:
        """Returns the fields that Slack Connect adds to messages by people from another team."""
        author = self._state.users.get(message.user)
        if author is None or author.team_id == self._state.team.id:
            return {}
        return {"user_team": author.team_id, "source_team": author.team_id}

    def _rewritten(self, change: Change, message: Message, channel: Channel) -> Json:
        event: Json = {"type": "message", "subtype": change.kind, "hidden": True, "ts": change.at}
        if change.previous:
            event["previous_message"] = self._renderer.message(change.previous)
        if change.kind == "message_changed":
            event["message"] = self._renderer.message(message)
        else:
            event["deleted_ts"] = message.ts
        return event | self._place(channel, change.at)

    def _joined(self, change: Change, channel: Channel) -> Json:
        user = self._state.users[change.actor]
        event: Json = {
            "type": "member_joined_channel",
            "user": user.id,
            "channel": channel.id,
            "channel_type": "G" if channel.is_private else "C",
            "team": user.team_id,
            "event_ts": change.at,
        }
        return event | ({"inviter": change.inviter} if change.inviter else {})

    def _place(self, channel: Channel, event_ts: str) -> Json:
        kind = "im" if channel.is_im else "group" if channel.is_private else "channel"
        return {"channel": channel.id, "channel_type": kind, "event_ts": event_ts}

    def _callback(self, event: Json, channel: Channel, change: Change) -> Json:
        team, app = self._state.team.id, self._app
        return {
            "team_id": team,
            "context_team_id": team,
            "context_enterprise_id": None,
            "api_app_id": app.app_id,
            "event": event,
            "type": "event_callback",
            "event_id": f"Ev{uuid4().hex[:11].upper()}",
            "event_time": int(float(change.at)),
            "authorizations": [
                {
                    "enterprise_id": None,
                    "team_id": team,
                    "user_id": app.bot_user_id,
                    "is_bot": True,
                    "is_enterprise_install": False,
                }
            ],
            "is_ext_shared_channel": channel.is_ext_shared,
        }


def _message_subscription(channel: Channel) -> str:
    return f"message.{channel.scope_family}"


def _reaction(change: Change, message: Message) -> Json:
    return {
        "type": change.kind,
        "user": change.actor,
        "reaction": change.name,
        "item": {"type": "message", "channel": change.channel, "ts": message.ts},
        "item_user": message.user,
        "event_ts": change.at,
    }
