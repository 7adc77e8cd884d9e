"""Slash commands, shortcuts and presses of a message's buttons: what only the app can answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.workspace.delivery.deliveries import Deliveries
from bot.workspace.delivery.response_urls import IssuedResponseUrls
from bot.workspace.delivery.transport import NotDeliveredError
from bot.workspace.model.app_config import AppConfig, Shortcut, SlashCommand
from bot.workspace.model.entities import Channel, Json, Message, User
from bot.workspace.model.errors import SlackError
from bot.workspace.model.state import SLACKBOT, State
from bot.workspace.model.text import escape
from bot.workspace.wire.envelopes import Ack
from bot.workspace.wire.interaction_payloads import InteractionPayloads


@dataclass(frozen=True)
class InteractionResult:
    """The outcome of an interaction.

    Args:
        ok: Whether the app acknowledged in time.
        text: The text that the person saw at once, if any.
        error: Slack's error code, such as ``operation_timeout``.
        payload: The acknowledgement's payload.
        message: The message that was shown, if any.
        errors: Errors in the inputs of a submitted view, by block id.
    """

    ok: bool
    text: str = ""
    error: str = ""
    payload: Json | None = None
    message: Message | None = None
    errors: Mapping[str, str] = field(default_factory=dict)


class Interactions:
    """Delivers interactions and shows the app's answers.

    Args:
        state: The workspace.
        app: The app.
        payloads: Builds the payloads.
        deliveries: Delivers them.
        response_urls: Issues the URLs at which the app may answer later.
    """

    def __init__(
        self,
        state: State,
        app: AppConfig,
        payloads: InteractionPayloads,
        deliveries: Deliveries,
        response_urls: IssuedResponseUrls,
    ) -> None:
        self._state = state
        self._app = app
        self._payloads = payloads
        self._deliveries = deliveries
        self._response_urls = response_urls

    async def command(self, user: User, channel: Channel, name: str, text: str) -> InteractionResult:
        """Runs a slash command as a person, in a channel."""
        command = self._app.command(name)
        if command is None or not self._may_use_app(user):
            return self._failed(user, channel, f"{escape(name)} is not a valid command.", "invalid_command")
        url = self._response_urls.issue(user.id, channel.id)
        payload = self._payloads.slash_command(user, channel, command, text, url)
        try:
            ack = await self._deliveries.request("slash_commands", payload)
        except NotDeliveredError as error:
            return self._command_failed(user, channel, command, _code(error))
        return self.show_ack(user, channel, command, ack)

    async def press(self, user: User, message: Message, action: Json) -> InteractionResult:
        """Uses an interactive element of a message as a person. ``action`` describes the element in the payload."""
        url = self._response_urls.issue(user.id, message.channel)
        return await deliver_interaction(self._deliveries, self._payloads.block_actions(user, message, action, url))

    async def message_shortcut(self, user: User, message: Message, callback_id: str) -> InteractionResult:
        """Runs one of the app's shortcuts on a message.

        Raises:
            SlackError: ``shortcut_not_found`` if the app has no such shortcut for this person and message.
        """
        shortcut = self._shortcut(user, callback_id, "message")
        if message.ephemeral_to is not None:
            raise SlackError("shortcut_not_found")
        url = self._response_urls.issue(user.id, message.channel)
        return await deliver_interaction(
            self._deliveries, self._payloads.message_shortcut(user, message, shortcut, url)
        )

    async def global_shortcut(self, user: User, callback_id: str) -> InteractionResult:
        """Runs one of the app's global shortcuts; ``shortcut_not_found`` as above."""
        return await deliver_interaction(
            self._deliveries, self._payloads.global_shortcut(user, self._shortcut(user, callback_id, "global"))
        )

    def _shortcut(self, user: User, callback_id: str, kind: str) -> Shortcut:
        shortcut = self._app.shortcut(callback_id)
        if shortcut is None or shortcut.kind != kind or not self._may_use_app(user):
            raise SlackError("shortcut_not_found")
        return shortcut

    def _may_use_app(self, user: User) -> bool:
        """Returns whether a person may use commands and shortcuts: people of another organization may not."""
        return "commands" in self._app.scopes and user.team_id == self._state.team.id

    def show_ack(self, user: User, channel: Channel, command: SlashCommand, ack: Ack) -> InteractionResult:
        """Shows the content of a command's acknowledgement. As in Slack, invalid content fails the command."""
        try:
            message = self._response_urls.show_ack(user.id, channel.id, ack.payload)
        except SlackError:
            return self._command_failed(user, channel, command, "dispatch_unknown_error")
        return InteractionResult(ok=True, text=message.text if message else "", payload=ack.payload, message=message)

    def _command_failed(self, user: User, channel: Channel, command: SlashCommand, code: str) -> InteractionResult:
        return self._failed(user, channel, f'{command.command} failed with the error "{code}"', code)

    def _failed(self, user: User, channel: Channel, text: str, code: str) -> InteractionResult:
        message = Message(channel.id, "", SLACKBOT, text, ephemeral_to=user.id)
        return InteractionResult(ok=False, text=text, error=code, message=self._state.show_ephemeral(message))


async def deliver_interaction(deliveries: Deliveries, payload: Json) -> InteractionResult:
    """Delivers a payload of the type ``interactive`` and returns the outcome."""
    try:
        ack = await deliveries.request("interactive", payload)
    except NotDeliveredError as error:
        return InteractionResult(ok=False, error=_code(error))
    return InteractionResult(ok=True, payload=ack.payload)


def _code(error: NotDeliveredError) -> str:
    return "operation_timeout" if "timeout" in error.reason else "dispatch_failed"
