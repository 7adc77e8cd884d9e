"""The payloads of slash commands and of interactive elements.

Shortcuts, modals and the Home tab would be more of these, in envelopes of the type ``interactive``.
"""

import secrets
from collections.abc import Iterator

from bot.workspace.model.app_config import AppConfig, SlashCommand
from bot.workspace.model.entities import Channel, Json, Message, User
from bot.workspace.model.errors import SlackError
from bot.workspace.model.state import State
from bot.workspace.model.text import stored_typed_text
from bot.workspace.wire.rendering import Renderer


class InteractionPayloads:
    """Makes the payloads that tell the app what a person did.

    Args:
        state: The workspace.
        app: The app.
        renderer: Shows messages as the app sees them.
        token: The verification token that old apps compare; random.
    """

    def __init__(self, state: State, app: AppConfig, renderer: Renderer, token: str) -> None:
        self._state = state
        self._app = app
        self._renderer = renderer
        self._token = token

    def slash_command(self, user: User, channel: Channel, command: SlashCommand, text: str, response_url: str) -> Json:
        return {
            "token": self._token,
            "team_id": self._state.team.id,
            "team_domain": self._state.team.domain,
            "channel_id": channel.id,
            "channel_name": _channel_name(channel),
            "user_id": user.id,
            "user_name": user.name,
            "command": command.command,
            "text": self._command_text(command, text),
            "api_app_id": self._app.app_id,
            "is_enterprise_install": "false",
            "response_url": response_url,
            "trigger_id": self._trigger_id(),
        }

    def block_actions(self, user: User, message: Message, action: Json, response_url: str) -> Json:
        """Returns the payload for the use of an element. ``action`` is the part that `find_action` returns."""
        channel = self._state.channels[message.channel]
        payload: Json = {
            "type": "block_actions",
            "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": user.team_id},
            "api_app_id": self._app.app_id,
            "token": self._token,
            "container": _container(message),
            "trigger_id": self._trigger_id(),
            "team": {"id": self._state.team.id, "domain": self._state.team.domain},
            "enterprise": None,
            "is_enterprise_install": False,
            "channel": {"id": channel.id, "name": _channel_name(channel)},
            "state": {"values": {}},
            "response_url": response_url,
            "actions": [action | {"action_ts": self._state.timestamps.next()}],
        }
        return payload if message.ephemeral_to is not None else payload | {"message": self._renderer.message(message)}

    def _command_text(self, command: SlashCommand, text: str) -> str:
        if not command.should_escape:
            return text
        return stored_typed_text(text, self._state.user_id, self._state.channel_id)

    def _trigger_id(self) -> str:
        return f"{int(self._state.now())}.{secrets.randbelow(10**10)}.{secrets.token_hex(16)}"


def find_action(message: Message, action_id: str, block_id: str | None, value: str | None) -> Json:
    """Returns the part of a payload that tells which element was used, and how.

    Args:
        message: The message that has the element.
        action_id: The element's id.
        block_id: Its block's id, where the same action id is in several.
        value: A button's value or an option's value, to tell elements with the same ids apart.

    Raises:
        SlackError: ``action_not_found``; the message has no such element.
    """
    for block, element in _elements(message):
        if element.get("action_id") != action_id or block_id not in {None, block["block_id"]}:
            continue
        base = {"action_id": action_id, "block_id": block["block_id"], "type": element["type"]}
        if element["type"] == "button":
            if value in {None, element.get("value")}:
                return base | {key: element[key] for key in ("text", "value", "style", "url") if key in element}
            continue
        options = element.get("options") or ()
        if chosen := next((option for option in options if option.get("value") == value), None):
            return base | {"selected_option": chosen}
    raise SlackError("action_not_found")


def _elements(message: Message) -> Iterator[tuple[Json, Json]]:
    for block in message.blocks or []:
        if isinstance(accessory := block.get("accessory"), dict):
            yield block, accessory
        elements = block.get("elements")
        for element in elements if isinstance(elements, list) else ():
            if isinstance(element, dict) and "action_id" in element:
                yield block, element


def _container(message: Message) -> Json:
    container: Json = {"type": "message", "message_ts": message.ts, "channel_id": message.channel}
    container["is_ephemeral"] = message.ephemeral_to is not None
    if message.is_reply:
        container["thread_ts"] = message.thread_ts
    return container


def _channel_name(channel: Channel) -> str:
    """Returns the name that payloads have: only that of a public channel is its own."""
    if channel.is_im:
        return "directmessage"
    return "privategroup" if channel.is_private else channel.name
