"""What people do that only the app answers: slash commands and presses of buttons.

Shortcuts, modals and the Home tab belong here too: each is one more payload and one more envelope of the type
``interactive``.
"""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bot.workspace.app_config import AppConfig, SlashCommand
from bot.workspace.deliveries import Ack, Deliveries, NotDeliveredError
from bot.workspace.errors import SlackError
from bot.workspace.models import Channel, Json, Message, Person
from bot.workspace.rendering import Rendering
from bot.workspace.response_urls import ResponseUrls
from bot.workspace.state import SLACKBOT, State
from bot.workspace.text import escape, stored_typed_text


@dataclass(frozen=True)
class Answer:
    """What came of a command or a press.

    Args:
        ok: Whether the app acknowledged in time.
        text: What the person was shown at once, if anything.
        error: Slack's word for what went wrong, such as ``operation_timeout``.
        payload: What the acknowledgement carried.
        message: The message that was shown, if any.
    """

    ok: bool
    text: str = ""
    error: str = ""
    payload: Json | None = None
    message: Message | None = None

    @property
    def timeout(self) -> bool:
        return self.error == "operation_timeout"


class Interactions:
    """Makes payloads of what people do, delivers them, and shows what comes back."""

    def __init__(
        self,
        state: State,
        app: AppConfig,
        rendering: Rendering,
        deliveries: Deliveries,
        response_urls: ResponseUrls,
        *,
        origin: Callable[[], str],
        token: str,
    ) -> None:
        self._state = state
        self._app = app
        self._rendering = rendering
        self._deliveries = deliveries
        self._response_urls = response_urls
        self._origin = origin
        self._token = token

    async def command(self, person: Person, channel: Channel, name: str, text: str) -> Answer:
        """Run a slash command as a person, in a channel."""
        command = self._app.command(name)
        if command is None or person.team_id != self._state.team.id:
            return self._failed(person, channel, f"{escape(name)} is not a valid command.", "invalid_command")
        try:
            ack = await self._deliveries.request("slash_commands", self._command(person, channel, command, text))
        except NotDeliveredError as error:
            return self._failed(person, channel, *_failure(command, _code(error)))
        typed = stored_typed_text(f"{name} {text}".rstrip(), *names(self._state))
        return self._shown(person, channel, command, ack, typed)

    async def press(self, person: Person, message: Message, action: Json) -> Answer:
        """Use an interactive element of a message as a person. ``action`` is its part of the payload."""
        channel = self._state.channels[message.channel]
        try:
            ack = await self._deliveries.request("interactive", self._block_actions(person, channel, message, action))
        except NotDeliveredError as error:
            return Answer(ok=False, error=_code(error))
        return Answer(ok=True, payload=ack.payload)

    def _shown(self, person: Person, channel: Channel, command: SlashCommand, ack: Ack, typed: str) -> Answer:
        """Slack shows an acknowledgement's content; one that is wrong fails the command."""
        try:
            message = self._response_urls.answer(person.id, channel.id, ack.payload, typed)
        except SlackError:
            return self._failed(person, channel, *_failure(command, "dispatch_unknown_error"))
        return Answer(ok=True, text=message.text if message else "", payload=ack.payload, message=message)

    def _failed(self, person: Person, channel: Channel, words: str, code: str) -> Answer:
        notice = Message(channel.id, "", SLACKBOT, words, ephemeral_to=person.id)
        return Answer(ok=False, text=words, error=code, message=self._state.show_ephemeral(notice))

    def _command(self, person: Person, channel: Channel, command: SlashCommand, text: str) -> Json:
        return {
            "token": self._token,
            "team_id": self._state.team.id,
            "team_domain": self._state.team.domain,
            "channel_id": channel.id,
            "channel_name": _spoken_name(channel),
            "user_id": person.id,
            "user_name": person.name,
            "command": command.command,
            "text": self._command_text(command, text),
            "api_app_id": self._app.app_id,
            "is_enterprise_install": "false",
            "response_url": self._response_urls.issue(self._origin(), "commands", person.id, channel.id),
            "trigger_id": self._trigger_id(),
        }

    def _command_text(self, command: SlashCommand, text: str) -> str:
        return stored_typed_text(text, *names(self._state)) if command.should_escape else text

    def _block_actions(self, person: Person, channel: Channel, message: Message, action: Json) -> Json:
        ephemeral = message.ephemeral_to is not None
        container: Json = {"type": "message", "message_ts": message.ts, "channel_id": channel.id}
        container["is_ephemeral"] = ephemeral
        if message.is_reply:
            container["thread_ts"] = message.thread_ts
        payload: Json = {
            "type": "block_actions",
            "user": {"id": person.id, "username": person.name, "name": person.name, "team_id": person.team_id},
            "api_app_id": self._app.app_id,
            "token": self._token,
            "container": container,
            "trigger_id": self._trigger_id(),
            "team": {"id": self._state.team.id, "domain": self._state.team.domain},
            "enterprise": None,
            "is_enterprise_install": False,
            "channel": {"id": channel.id, "name": _spoken_name(channel)},
            "state": {"values": {}},
            "response_url": self._response_urls.issue(self._origin(), "actions", person.id, channel.id, message),
            "actions": [action | {"action_ts": self._state.timestamps.next()}],
        }
        return payload if ephemeral else payload | {"message": self._rendering.message(message)}

    def _trigger_id(self) -> str:
        return f"{int(self._state.now())}.{secrets.randbelow(10**10)}.{secrets.token_hex(16)}"


def _code(error: NotDeliveredError) -> str:
    return "operation_timeout" if "timeout" in error.reason else "dispatch_failed"


def _failure(command: SlashCommand, code: str) -> tuple[str, str]:
    """Slack's sentence for a command that came to nothing, and its code."""
    return f'{command.command} failed with the error "{code}"', code


def find_action(message: Message, action_id: str, block_id: str | None, value: str | None) -> Json:
    """The part of a payload that tells which element was used, and how.

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


def names(state: State) -> tuple[Callable[[str], str | None], Callable[[str], str | None]]:
    """How typed ``@names`` and ``#channels`` find their ids."""

    def person(name: str) -> str | None:
        found = state.find_person(name)
        return found.id if found and found.name == name else None

    def channel(name: str) -> str | None:
        found = state.find_channel(name)
        return found.id if found and found.name == name else None

    return person, channel


def _spoken_name(channel: Channel) -> str:
    if channel.is_im:
        return "directmessage"
    return "privategroup" if channel.is_private else channel.name
