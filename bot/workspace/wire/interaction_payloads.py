"""Builds the payloads of slash commands, shortcuts and interactive elements in messages and views."""

import secrets
from collections.abc import Sequence

from bot.workspace.model.app_config import AppConfig, Shortcut, SlashCommand
from bot.workspace.model.elements import Values, elements, values_of
from bot.workspace.model.entities import Channel, Json, Message, SlackError, User
from bot.workspace.model.state import State
from bot.workspace.model.text import stored_typed_text
from bot.workspace.model.views import Trigger, Triggers, View
from bot.workspace.wire.rendering import Renderer
from bot.workspace.wire.views import rendered_view


class InteractionPayloads:
    """Builds the payloads that tell the app what a person did.

    Args:
        state: The workspace.
        app: The app.
        renderer: Renders messages for the app.
        triggers: Issues the trigger ids.
    """

    def __init__(self, state: State, app: AppConfig, renderer: Renderer, triggers: Triggers) -> None:
        self._state = state
        self._app = app
        self._renderer = renderer
        self._triggers = triggers

    def slash_command(self, user: User, channel: Channel, command: SlashCommand, text: str) -> Json:
        return {
            "team_id": self._state.team.id,
            "team_domain": self._state.team.domain,
            "channel_id": channel.id,
            "channel_name": channel.name,
            "user_id": user.id,
            "user_name": user.name,
            "command": command.command,
            "text": self._command_text(command, text),
            "api_app_id": self._app.app_id,
            "is_enterprise_install": "false",
            "response_url": self._response_url(),
            "trigger_id": self._triggers.issue(Trigger(user.id, channel.id)),
        }

    def global_shortcut(self, user: User, shortcut: Shortcut) -> Json:
        return {
            "type": "shortcut",
            "team": self._team(),
            "user": {"id": user.id, "username": user.name, "team_id": user.team_id},
            "callback_id": shortcut.callback_id,
            "trigger_id": self._triggers.issue(Trigger(user.id)),
        }

    def message_shortcut(self, user: User, message: Message, shortcut: Shortcut) -> Json:
        channel = self._state.channels[message.channel]
        return {
            "type": "message_action",
            "team": self._team(),
            "user": {"id": user.id, "team_id": user.team_id, "name": user.name},
            "channel": {"id": channel.id, "name": channel.name},
            "callback_id": shortcut.callback_id,
            "trigger_id": self._triggers.issue(Trigger(user.id, channel.id)),
            "response_url": self._response_url(),
            "message_ts": message.ts,
            "message": self._renderer.message(message),
        }

    def block_actions(self, user: User, message: Message, action: Json) -> Json:
        """Returns the payload for using a message's element. ``action`` is what `find_action` returned."""
        channel = self._state.channels[message.channel]
        payload = self._block_actions(user, action, Trigger(user.id, channel.id)) | {
            "container": _container(message),
            "channel": {"id": channel.id, "name": channel.name},
            "state": {"values": _values(message, action)},
            "response_url": self._response_url(),
        }
        return payload if message.ephemeral_to is not None else payload | {"message": self._renderer.message(message)}

    def view_actions(self, user: User, view: View, action: Json) -> Json:
        """Returns the payload for using an element of a modal or Home; it has no channel."""
        return self._block_actions(user, action, Trigger(user.id)) | {
            "container": {"type": "view", "view_id": view.id},
            "view": self._view(view),
        }

    def view_submission(self, user: User, view: View) -> Json:
        return self._common_fields("view_submission", user) | {
            "trigger_id": self._triggers.issue(Trigger(user.id)),
            "view": self._view(view),
        }

    def view_closed(self, user: User, view: View, *, is_cleared: bool) -> Json:
        """Returns the payload for a closed modal; ``is_cleared`` means by the cross at its top."""
        shown = rendered_view(view, self._state.team, self._app, with_values=False)
        return self._common_fields("view_closed", user) | {"view": shown, "is_cleared": is_cleared}

    def _block_actions(self, user: User, action: Json, trigger: Trigger) -> Json:
        return self._common_fields("block_actions", user) | {
            "trigger_id": self._triggers.issue(trigger),
            "actions": [action | {"action_ts": self._state.timestamps.next()}],
        }

    def _common_fields(self, kind: str, user: User) -> Json:
        return {
            "type": kind,
            "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": user.team_id},
            "api_app_id": self._app.app_id,
            "team": self._team(),
        }

    def _view(self, view: View) -> Json:
        return rendered_view(view, self._state.team, self._app)

    def _team(self) -> Json:
        return {"id": self._state.team.id, "domain": self._state.team.domain}

    def _response_url(self) -> str:
        """Returns an address for later answers, which this workspace does not take."""
        return f"{self._renderer.origin()}/commands/{self._state.team.id}/{secrets.token_urlsafe(18)}"

    def _command_text(self, command: SlashCommand, text: str) -> str:
        if not command.should_escape:
            return text
        return stored_typed_text(text, self._state.user_id, self._state.channel_id, self._state.group_id)


def find_action(blocks: Sequence[Json] | None, action_id: str, block_id: str | None, value: str | None) -> Json:
    """Returns the part of a payload that says which button or menu was used, and how.

    Args:
        blocks: The blocks of the message or view.
        action_id: The element's id.
        block_id: Its block's id, needed if several blocks use the same action id.
        value: A button's value, to tell buttons with the same ids apart, or the chosen option's.

    Raises:
        SlackError: ``action_not_found`` if there is no such element.
    """
    for element in elements(blocks):
        if element.action_id != action_id or block_id not in {None, element.block_id}:
            continue
        base = {"action_id": action_id, "block_id": element.block_id, "type": element.type}
        body = element.body
        if element.type == "button":
            if value in {None, body.get("value")}:
                return base | {key: body[key] for key in ("text", "value", "style", "url") if key in body}
            continue
        options = body.get("options") or ()
        if chosen := next((option for option in options if option.get("value") == value), None):
            return base | {"selected_option": chosen}
    raise SlackError("action_not_found")


def _values(message: Message, action: Json) -> Values:
    """Returns what the message's menus hold: the used one its new value, the others their initial values."""
    values = values_of(message.blocks or [], {}, message.channel)
    held = values.get(action["block_id"], {})
    if action["action_id"] in held:
        used = {key: value for key, value in action.items() if key not in {"action_id", "block_id"}}
        held[action["action_id"]] = used
    return values


def _container(message: Message) -> Json:
    container: Json = {"type": "message", "message_ts": message.ts, "channel_id": message.channel}
    container["is_ephemeral"] = message.ephemeral_to is not None
    if message.is_reply:
        container["thread_ts"] = message.thread_ts
    return container
