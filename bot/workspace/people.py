"""What a person does in the workspace, for tests and for the page alike."""

from collections.abc import Sequence
from uuid import uuid4

from bot.workspace.delivery.interactions import InteractionResult, Interactions
from bot.workspace.model.app_config import AppConfig, MessagesTab
from bot.workspace.model.entities import Channel, Json, Message, User
from bot.workspace.model.errors import SlackError
from bot.workspace.model.state import State
from bot.workspace.model.text import TEXT_LIMIT, emoji_name, stored_typed_text
from bot.workspace.wire.interaction_payloads import find_action


class Actor:
    """A person of the workspace, who can do what people do in Slack.

    Channels are given by id or name; messages by channel and timestamp. What Slack would not let the person do
    raises SlackError. The app is told of whatever is done here by the events that it subscribed to.

    Args:
        user: Who acts.
        state: The workspace.
        app: The app, to which the person can talk directly.
        interactions: Brings commands and presses to the app.
    """

    def __init__(self, user: User, state: State, app: AppConfig, interactions: Interactions) -> None:
        self.user = user
        self._state = state
        self._app = app
        self._interactions = interactions

    @property
    def id(self) -> str:
        return self.user.id

    @property
    def mention(self) -> str:
        """Returns how the person is mentioned in a message's text."""
        return f"<@{self.user.id}>"

    # seeing

    def can_see(self, channel: Channel) -> bool:
        """Returns whether the person sees a channel: its members do, and if it is public all of the team but guests."""
        if self.user.id in channel.members:
            return True
        guest = self.user.is_restricted or self.user.is_ultra_restricted
        outsider = self.user.team_id != self._state.team.id
        return not (channel.is_private or channel.is_im or guest or outsider)

    def can_write_in(self, channel: Channel) -> bool:
        """Returns whether Slack shows the person a composer there, for messages and commands alike."""
        return not channel.is_im or self._app.messages_tab is MessagesTab.OPEN

    def channel(self, name: str) -> Channel:
        """Returns a channel that the person sees; the app's name stands for the direct conversation with it.

        Raises:
            SlackError: ``channel_not_found``.
        """
        bot, channel = self._app.bot_user_id, self._state.find_channel(name)
        if channel is None and self._state.find_user(name) == self._state.users[bot]:
            channel = self._state.direct_channel(bot, self.user.id)
        if channel is None or not self.can_see(channel):
            raise SlackError("channel_not_found")
        return channel

    def ephemerals(self, channel: str) -> list[Message]:
        """Returns the messages in a channel that only this person sees, oldest first."""
        return self._state.ephemerals(self.channel(channel), self.user.id)

    # acting

    async def say(
        self,
        channel: str,
        text: str,
        *,
        thread_ts: str | None = None,
        broadcast: bool = False,
        files: Sequence[str] | None = None,
    ) -> Message:
        """Writes a message. ``@name``, ``#channel`` and URLs become references, as in Slack's composer.

        Args:
            channel: Where.
            text: What is typed.
            thread_ts: The thread to reply in.
            broadcast: Whether a reply is also sent to the channel.
            files: Names of files uploaded with it; their content is of no matter.
        """
        place = self._writable(channel)
        if len(text) > TEXT_LIMIT:
            raise SlackError("msg_too_long")
        if not text.strip() and not files:
            raise SlackError("no_text")
        message = Message(place.id, "", self.user.id, self._stored(text), client_msg_id=str(uuid4()))
        message.thread_ts = thread_ts
        if files:
            message.files = [self._file(name) for name in files]
            message.subtype = "file_share"
        elif thread_ts and broadcast:
            message.subtype = "thread_broadcast"
        return self._state.post(message)

    async def command(self, channel: str, name: str, text: str = "") -> InteractionResult:
        """Runs a slash command such as ``/docs`` and waits for the app's acknowledgement."""
        return await self._interactions.command(self.user, self._writable(channel), name, text)

    async def press(
        self, channel: str, ts: str, action_id: str, *, block_id: str | None = None, value: str | None = None
    ) -> InteractionResult:
        """Presses a button of a message, or chooses from its menu by ``value``, and waits for the acknowledgement."""
        place = self.channel(channel)
        message = self._state.ephemeral(place, ts, self.user.id) or self._state.message(place, ts)
        return await self._interactions.press(self.user, message, find_action(message, action_id, block_id, value))

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
        place = self.channel(channel)
        if place.is_im:
            raise SlackError("method_not_supported_for_channel_type")
        self._state.join(place, self.user.id)

    async def leave(self, channel: str) -> None:
        self._state.leave(self._member_of(channel), self.user.id)

    async def invite(self, channel: str, name: str) -> None:
        """Brings a person or the app into a channel."""
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

    def _writable(self, name: str) -> Channel:
        channel = self._member_of(name)
        if not self.can_write_in(channel):
            raise SlackError("messages_tab_not_open")
        return channel

    def _own_message(self, channel: str, ts: str, refusal: str) -> Message:
        message = self._state.message(self._member_of(channel), ts)
        if message.user != self.user.id or message.subtype in {"channel_join", "channel_leave"}:
            raise SlackError(refusal)
        return message

    def _stored(self, text: str) -> str:
        return stored_typed_text(text, self._state.user_id, self._state.channel_id)

    def _file(self, name: str) -> Json:
        file_id = f"F{uuid4().hex[:10].upper()}"
        return {
            "id": file_id,
            "name": name,
            "title": name,
            "mimetype": "application/octet-stream",
            "filetype": name.rpartition(".")[2] or "binary",
            "user": self.user.id,
            "mode": "hosted",
            "size": 0,
            "is_external": False,
            "url_private": f"https://files.invalid/{file_id}/{name}",
        }


class People:
    """The people of the workspace, by name or id: ``people["ana"]``.

    Args:
        state: The workspace.
        app: The app.
        interactions: Brings commands and presses to the app.
    """

    def __init__(self, state: State, app: AppConfig, interactions: Interactions) -> None:
        self._state = state
        self._app = app
        self._interactions = interactions

    def __getitem__(self, name: str) -> Actor:
        """Returns a person who can do what people do.

        Raises:
            SlackError: ``user_not_found``.
        """
        user = self._state.find_user(name)
        if user is None:
            raise SlackError("user_not_found")
        return self._actor(user)

    def human(self, user_id: str) -> Actor:
        """Returns the person of an id, who is not a bot.

        Raises:
            SlackError: ``user_not_found``.
        """
        user = self._state.users.get(user_id)
        if user is None or user.is_bot:
            raise SlackError("user_not_found")
        return self._actor(user)

    def first_human(self) -> Actor:
        """Returns the one who has been here longest."""
        return self._actor(next(user for user in self._state.users.values() if not user.is_bot))

    def _actor(self, user: User) -> Actor:
        return Actor(user, self._state, self._app, self._interactions)
