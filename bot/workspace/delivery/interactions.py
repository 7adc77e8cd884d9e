"""What people do that only the app answers: slash commands, shortcuts, and presses of a message's buttons."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.workspace.delivery.deliveries import Deliveries
from bot.workspace.delivery.response_urls import IssuedResponseUrls
from bot.workspace.delivery.transport import NotDeliveredError
from bot.workspace.model.app_config import AppConfig, Shortcut, SlashCommand
from bot.workspace.model.entities import Channel, Json, Message, User
from bot.workspace.model.errors import SlackError
from bot.workspace.model.state import SLACKBOT, State
from bot.workspace.model.text import escape, stored_typed_text
from bot.workspace.wire.envelopes import Ack
from bot.workspace.wire.interaction_payloads import InteractionPayloads


@dataclass(frozen=True)
class InteractionResult:
    """What came of a command or a press.

    Args:
        ok: Whether the app acknowledged in time.
        text: What the person was shown at once, if anything.
        error: Slack's word for what went wrong, such as ``operation_timeout``.
        payload: What the acknowledgement carried.
        message: The message that was shown, if any.
        errors: What is wrong with the inputs of a view that was submitted, by block id.
    """

    ok: bool
    text: str = ""
    error: str = ""
    payload: Json | None = None
    message: Message | None = None
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def timeout(self) -> bool:
        return self.error == "operation_timeout"


class Interactions:
    """Delivers what people do, and shows what comes back.

    Args:
        state: The workspace.
        app: The app.
        payloads: Makes what the app is told.
        deliveries: Brings it to the app.
        response_urls: Makes the address at which the app may answer later.
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
        if command is None or not self._may_start(user):
            return self._failed(user, channel, f"{escape(name)} is not a valid command.", "invalid_command")
        url = self._response_urls.issue("commands", user.id, channel.id)
        payload = self._payloads.slash_command(user, channel, command, text, url)
        try:
            ack = await self._deliveries.request("slash_commands", payload)
        except NotDeliveredError as error:
            return self._command_failed(user, channel, command, _code(error))
        typed = stored_typed_text(
            f"{name} {text}".rstrip(), self._state.user_id, self._state.channel_id, self._state.group_id
        )
        return self.show_ack(user, channel, command, ack, typed)

    async def press(self, user: User, message: Message, action: Json) -> InteractionResult:
        """Uses an interactive element of a message as a person. ``action`` is its part of the payload."""
        url = self._response_urls.issue("actions", user.id, message.channel, message)
        return await self._tell(self._payloads.block_actions(user, message, action, url))

    async def message_shortcut(self, user: User, message: Message, callback_id: str) -> InteractionResult:
        """Runs one of the app's shortcuts on a message.

        Raises:
            SlackError: ``shortcut_not_found``; it has none of that name, or not for this person or this message.
        """
        shortcut = self._shortcut(user, callback_id, "message")
        if message.ephemeral_to is not None:
            raise SlackError("shortcut_not_found")
        url = self._response_urls.issue("app", user.id, message.channel)
        return await self._tell(self._payloads.message_shortcut(user, message, shortcut, url))

    async def global_shortcut(self, user: User, callback_id: str) -> InteractionResult:
        """Runs one of the app's shortcuts that belong to no message; ``shortcut_not_found`` as above."""
        return await self._tell(self._payloads.global_shortcut(user, self._shortcut(user, callback_id, "global")))

    def _shortcut(self, user: User, callback_id: str, kind: str) -> Shortcut:
        shortcut = self._app.shortcut(callback_id)
        if shortcut is None or shortcut.kind != kind or not self._may_start(user):
            raise SlackError("shortcut_not_found")
        return shortcut

    def _may_start(self, user: User) -> bool:
        """Returns whether commands and shortcuts are there for a person: not for those of another organization."""
        return "commands" in self._app.scopes and user.team_id == self._state.team.id

    async def _tell(self, payload: Json) -> InteractionResult:
        try:
            ack = await self._deliveries.request("interactive", payload)
        except NotDeliveredError as error:
            return failed_delivery(error)
        return InteractionResult(ok=True, payload=ack.payload)

    def show_ack(self, user: User, channel: Channel, command: SlashCommand, ack: Ack, typed: str) -> InteractionResult:
        """Shows what a command's acknowledgement carried. As in Slack, content that is wrong fails the command."""
        try:
            message = self._response_urls.show_ack(user.id, channel.id, ack.payload, typed)
        except SlackError:
            return self._command_failed(user, channel, command, "dispatch_unknown_error")
        return InteractionResult(ok=True, text=message.text if message else "", payload=ack.payload, message=message)

    def _command_failed(self, user: User, channel: Channel, command: SlashCommand, code: str) -> InteractionResult:
        return self._failed(user, channel, f'{command.command} failed with the error "{code}"', code)

    def _failed(self, user: User, channel: Channel, text: str, code: str) -> InteractionResult:
        message = Message(channel.id, "", SLACKBOT, text, ephemeral_to=user.id)
        return InteractionResult(ok=False, text=text, error=code, message=self._state.show_ephemeral(message))


def failed_delivery(error: NotDeliveredError) -> InteractionResult:
    """Returns what comes of a doing that the app did not acknowledge."""
    return InteractionResult(ok=False, error=_code(error))


def _code(error: NotDeliveredError) -> str:
    return "operation_timeout" if "timeout" in error.reason else "dispatch_failed"
