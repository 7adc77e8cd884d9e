"""What people do in the workspace. Tests and the page use it alike."""

from collections.abc import Sequence
from uuid import uuid4

from bot.workspace.delivery.deliveries import Ack, InteractionResult, NotDeliveredError, failure_code
from bot.workspace.model.app_config import Shortcut
from bot.workspace.model.entities import Channel, File, Message, SlackError, Upload, User
from bot.workspace.model.state import SLACKBOT
from bot.workspace.model.text import TEXT_LIMIT, emoji_name, escape, stored_app_text, stored_typed_text
from bot.workspace.person_views import ActorContext, PersonViews
from bot.workspace.wire.interaction_payloads import find_action


class Actor:
    """A person in the workspace, with methods for what people do in Slack.

    Channels are given by id or name, messages by channel and timestamp. What Slack would not let the person do raises
    SlackError. The app gets the events that it subscribed to.

    Args:
        user: Who acts.
        context: The workspace and the app.
    """

    def __init__(self, user: User, context: ActorContext) -> None:
        self.user = user
        self.views = PersonViews(user, context, self.channel)
        self._state = context.state
        self._app = context.app
        self._context = context
        self._payloads = context.payloads

    @property
    def id(self) -> str:
        return self.user.id

    @property
    def mention(self) -> str:
        """The mention of the person in a message's text."""
        return f"<@{self.user.id}>"

    @property
    def is_external(self) -> bool:
        """Whether they belong to another organization, with which a channel is shared."""
        return self.user.team_id != self._state.team.id

    # seeing

    def can_see(self, channel: Channel) -> bool:
        """Returns whether the person sees a channel: members do, and the team without guests sees public channels."""
        if self.user.id in channel.members:
            return True
        return not (channel.is_private or channel.is_im or self.user.is_guest or self.is_external)

    def channel(self, name: str) -> Channel:
        """Returns a channel that the person sees. The app's name means the direct conversation with it.

        Raises:
            SlackError: ``channel_not_found``.
        """
        bot, channel = self._app.bot_user_id, self._state.find_channel(name)
        if channel is None and not self.is_external and self._state.find_user(name) == self._state.users[bot]:
            channel = self._state.direct_channel(bot, self.user.id)
        if channel is None or not self.can_see(channel):
            raise SlackError("channel_not_found")
        return channel

    def ephemerals(self, channel: str) -> list[Message]:
        """Returns the ephemeral messages for this person in a channel, oldest first."""
        return self._state.ephemerals(self.channel(channel), self.user.id)

    # acting

    async def say(
        self,
        channel: str,
        text: str,
        *,
        thread_ts: str | None = None,
        broadcast: bool = False,
        files: Sequence[str | Upload] | None = None,
    ) -> Message:
        """Writes a message. ``@name``, ``#channel`` and URLs become references, as in Slack's composer.

        Args:
            channel: The channel.
            text: The typed text.
            thread_ts: The thread to reply in.
            broadcast: Whether to also send a reply to the channel.
            files: Files to upload with it; a name alone is an empty file.
        """
        place = self._member_of(channel)
        if len(text) > TEXT_LIMIT:
            raise SlackError("msg_too_long")
        if not text.strip() and not files:
            raise SlackError("no_text")
        message = self._message(place, text, thread_ts)
        if files:
            message.files = self._upload(files)
            message.subtype = "file_share"
        elif thread_ts and broadcast:
            message.subtype = "thread_broadcast"
        return self._state.post(message)

    async def forward(self, channel: str, ts: str, to: str, *, thread_ts: str | None = None, text: str = "") -> Message:
        """Shares a message into another conversation or thread, with optional text."""
        original = self._state.message(self.channel(channel), ts)
        message = self._message(self._member_of(to), text, thread_ts)
        message.attachments = [self._context.renderer.forwarded(original)]
        return self._state.post(message)

    async def command(self, channel: str, name: str, text: str = "") -> InteractionResult:
        """Runs a slash command such as ``/docs`` and waits for the app's acknowledgement."""
        place, command = self._member_of(channel), self._app.command(name)
        if command is None or not self._may_use_app():
            return self._failed(place, f"{escape(name)} is not a valid command.", "invalid_command")
        payload = self._payloads.slash_command(self.user, place, command, text)
        try:
            ack = await self._context.deliveries.request("slash_commands", payload)
        except NotDeliveredError as error:
            code = failure_code(error)
            return self._failed(place, f'{name} failed with the error "{code}"', code)
        return self._show_ack(place, ack)

    def _show_ack(self, place: Channel, ack: Ack) -> InteractionResult:
        """Shows the text of a command's acknowledgement."""
        text = stored_app_text(str(ack.payload.get("text") or ""))
        if not text:
            return InteractionResult(ok=True, payload=ack.payload)
        message = self._state.show_ephemeral(self._app.message(place.id, text, None, ephemeral_to=self.id))
        return InteractionResult(ok=True, text=text, payload=ack.payload, message=message)

    def _failed(self, place: Channel, text: str, code: str) -> InteractionResult:
        message = Message(place.id, "", SLACKBOT, text, ephemeral_to=self.id)
        return InteractionResult(ok=False, text=text, error=code, message=self._state.show_ephemeral(message))

    async def press(
        self, channel: str, ts: str, action_id: str, *, block_id: str | None = None, value: str | None = None
    ) -> InteractionResult:
        """Presses a button of a message, or chooses from its menu by ``value``, and waits for the acknowledgement."""
        message = self._seen(channel, ts)
        action = find_action(message.blocks, action_id, block_id, value)
        return await self._context.deliver(self._payloads.block_actions(self.user, message, action))

    async def shortcut(self, channel: str, ts: str, callback_id: str) -> InteractionResult:
        """Runs a message shortcut of the app and waits for the acknowledgement.

        Raises:
            SlackError: ``shortcut_not_found`` if the app has no such shortcut for this person and message.
        """
        message, shortcut = self._seen(channel, ts), self._shortcut(callback_id, "message")
        if message.ephemeral_to is not None:
            raise SlackError("shortcut_not_found")
        return await self._context.deliver(self._payloads.message_shortcut(self.user, message, shortcut))

    async def global_shortcut(self, callback_id: str) -> InteractionResult:
        """Runs a global shortcut of the app; ``shortcut_not_found`` as above."""
        shortcut = self._shortcut(callback_id, "global")
        return await self._context.deliver(self._payloads.global_shortcut(self.user, shortcut))

    def _seen(self, channel: str, ts: str) -> Message:
        place = self.channel(channel)
        return self._state.ephemeral(place, ts, self.id) or self._state.message(place, ts)

    def _shortcut(self, callback_id: str, kind: str) -> Shortcut:
        shortcut = self._app.shortcut(callback_id)
        if shortcut is None or shortcut.type != kind or not self._may_use_app():
            raise SlackError("shortcut_not_found")
        return shortcut

    def _may_use_app(self) -> bool:
        """Returns whether the person may use commands and shortcuts: people of another organization may not."""
        return "commands" in self._app.scopes and not self.is_external

    async def edit(self, channel: str, ts: str, text: str) -> Message:
        message = self._own_message(channel, ts, "cant_update_message")
        if not text.strip():
            raise SlackError("no_text")
        edited = {"edited_by": self.user.id, "edited_ts": self._state.timestamps.next()}
        return self._state.edit(message, self.user.id, text=self._stored(text), **edited)

    async def delete(self, channel: str, ts: str) -> None:
        self._state.delete(self._own_message(channel, ts, "cant_delete_message"), self.user.id)

    async def react(self, channel: str, ts: str, name: str) -> None:
        self._state.react(self._state.message(self._member_of(channel), ts), self.user.id, emoji_name(name))

    async def unreact(self, channel: str, ts: str, name: str) -> None:
        self._state.unreact(self._state.message(self._member_of(channel), ts), self.user.id, emoji_name(name))

    async def join(self, channel: str) -> None:
        self._state.join(self.channel(channel), self.user.id)

    async def invite(self, channel: str, name: str) -> None:
        """Adds a person or the app to a channel."""
        place = self._member_of(channel)
        invited = self._state.find_user(name)
        if invited is None or place.is_im:
            raise SlackError("user_not_found")
        self._state.join(place, invited.id, inviter=self.user.id)

    def _member_of(self, name: str) -> Channel:
        channel = self.channel(name)
        if self.user.id not in channel.members:
            raise SlackError("not_in_channel")
        if channel.is_archived:
            raise SlackError("is_archived")
        return channel

    def _own_message(self, channel: str, ts: str, refusal: str) -> Message:
        message = self._state.message(self._member_of(channel), ts)
        if message.user != self.user.id or message.subtype in {"channel_join", "channel_leave"}:
            raise SlackError(refusal)
        return message

    def _stored(self, text: str) -> str:
        return stored_typed_text(text, self._state.user_id, self._state.channel_id, self._state.group_id)

    def _message(self, place: Channel, text: str, thread_ts: str | None) -> Message:
        stored, own_id = self._stored(text), str(uuid4())
        return Message(place.id, "", self.user.id, stored, thread_ts=thread_ts, client_msg_id=own_id)

    def _upload(self, files: Sequence[str | Upload]) -> list[File]:
        """Stores the files of a message before it is posted."""
        uploads = [Upload(file) if isinstance(file, str) else file for file in files]
        return [self._state.files.add(upload) for upload in uploads]


class WorkspacePeople:
    """The people of the workspace, by name or id: ``people["ana"]``.

    Args:
        context: The workspace and the app.
    """

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._users = context.state.users

    def __getitem__(self, name: str) -> Actor:
        """Returns a person by name or id.

        Raises:
            SlackError: ``user_not_found``.
        """
        return self._actor(self._context.state.find_user(name))

    def human(self, user_id: str) -> Actor:
        """Returns the person with an id; a bot is none.

        Raises:
            SlackError: ``user_not_found``.
        """
        user = self._users.get(user_id)
        return self._actor(None if user and user.is_bot else user)

    def first_human(self) -> Actor:
        """Returns the first person who was added."""
        return self._actor(next(user for user in self._users.values() if not user.is_bot))

    def _actor(self, user: User | None) -> Actor:
        if user is None:
            raise SlackError("user_not_found")
        return Actor(user, self._context)
