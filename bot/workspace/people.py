"""What a person does in the workspace, for tests and for the page alike."""

from collections.abc import Callable, Sequence
from uuid import uuid4

from bot.workspace.errors import SlackError
from bot.workspace.interactions import Answer, Interactions, find_action, names
from bot.workspace.methods.reactions import emoji_name
from bot.workspace.models import Channel, Json, Message, Person
from bot.workspace.state import State
from bot.workspace.text import TEXT_LIMIT, stored_typed_text


class Actor:
    """A person of the workspace, who can do what people do in Slack.

    Channels are given by id or name; messages by channel and timestamp. What Slack would not let the person do
    raises SlackError. Whatever is done here tells the app by an event where it listens.
    """

    def __init__(self, person: Person, state: State, interactions: Interactions, bot: Callable[[], Person]) -> None:
        self.person = person
        self._state = state
        self._interactions = interactions
        self._bot = bot

    @property
    def id(self) -> str:
        return self.person.id

    @property
    def mention(self) -> str:
        """How the person is mentioned in a message's text."""
        return f"<@{self.person.id}>"

    # what the person sees

    def sees(self, channel: Channel) -> bool:
        """Members see their channels; those of the home team who are no guests see public ones too."""
        if self.person.id in channel.members:
            return True
        guest = self.person.is_restricted or self.person.is_ultra_restricted
        outsider = self.person.team_id != self._state.team.id
        return not (channel.is_private or channel.is_im or guest or outsider)

    def channel(self, name: str) -> Channel:
        """A channel that the person sees; a person's name stands for the direct conversation with the app."""
        channel = self._state.find_channel(name)
        if channel is None and self._state.find_person(name) == self._bot():
            channel = self._state.direct_channel(self._bot().id, self.person.id)
        if channel is None or not self.sees(channel):
            raise SlackError("channel_not_found")
        return channel

    def ephemerals(self, channel: str) -> list[Message]:
        """The messages in a channel that only this person sees, oldest first."""
        return self._state.ephemerals(self.channel(channel), self.person.id)

    # what the person does

    async def say(
        self,
        channel: str,
        text: str,
        *,
        thread_ts: str | None = None,
        broadcast: bool = False,
        files: Sequence[str] | None = None,
    ) -> Message:
        """Write a message. ``@name``, ``#channel`` and URLs become references, as in Slack's composer.

        Args:
            channel: Where.
            text: What is typed.
            thread_ts: The thread to reply in.
            broadcast: Whether a reply is also sent to the channel.
            files: Names of files uploaded with it; their content is of no matter.
        """
        place = self._member_of(channel)
        if len(text) > TEXT_LIMIT:
            raise SlackError("msg_too_long")
        if not text.strip() and not files:
            raise SlackError("no_text")
        message = Message(place.id, "", self.person.id, self._stored(text), client_msg_id=str(uuid4()))
        message.thread_ts = thread_ts
        if files:
            message.files = [self._file(name) for name in files]
            message.subtype = "file_share"
        elif thread_ts and broadcast:
            message.subtype = "thread_broadcast"
        return self._state.post(message)

    async def command(self, channel: str, name: str, text: str = "") -> Answer:
        """Run a slash command such as ``/docs`` and wait for the app's acknowledgement."""
        return await self._interactions.command(self.person, self._member_of(channel), name, text)

    async def press(
        self, channel: str, ts: str, action_id: str, *, block_id: str | None = None, value: str | None = None
    ) -> Answer:
        """Press a button of a message, or choose from its menu by ``value``, and wait for the acknowledgement."""
        place = self.channel(channel)
        message = self._state.ephemeral(place, ts, self.person.id) or self._state.message(place, ts)
        return await self._interactions.press(self.person, message, find_action(message, action_id, block_id, value))

    async def edit(self, channel: str, ts: str, text: str) -> Message:
        message = self._own(channel, ts, "cant_update_message")
        if not text.strip():
            raise SlackError("no_text")
        edited = {"edited_by": self.person.id, "edited_ts": self._state.timestamps.next()}
        return self._state.edit(message, self.person.id, text=self._stored(text), **edited)

    async def delete(self, channel: str, ts: str) -> None:
        self._state.delete(self._own(channel, ts, "cant_delete_message"), self.person.id)

    async def react(self, channel: str, ts: str, name: str) -> None:
        self._state.react(self._state.message(self._member_of(channel), ts), self.person.id, emoji_name(name))

    async def unreact(self, channel: str, ts: str, name: str) -> None:
        self._state.unreact(self._state.message(self._member_of(channel), ts), self.person.id, emoji_name(name))

    async def join(self, channel: str) -> None:
        place = self.channel(channel)
        if place.is_im:
            raise SlackError("method_not_supported_for_channel_type")
        self._state.join(place, self.person.id)

    async def leave(self, channel: str) -> None:
        self._state.leave(self._member_of(channel), self.person.id)

    async def invite(self, channel: str, name: str) -> None:
        """Bring a person or the app into a channel."""
        place = self._member_of(channel)
        invited = self._state.find_person(name)
        if invited is None or place.is_im:
            raise SlackError("user_not_found")
        self._state.join(place, invited.id, inviter=self.person.id)

    def _member_of(self, name: str) -> Channel:
        channel = self.channel(name)
        if self.person.id not in channel.members:
            raise SlackError("not_in_channel")
        if channel.is_archived:
            raise SlackError("is_archived")
        return channel

    def _own(self, channel: str, ts: str, refusal: str) -> Message:
        message = self._state.message(self._member_of(channel), ts)
        if message.user != self.person.id or message.subtype in {"channel_join", "channel_leave"}:
            raise SlackError(refusal)
        return message

    def _stored(self, text: str) -> str:
        return stored_typed_text(text, *names(self._state))

    def _file(self, name: str) -> Json:
        file_id = f"F{uuid4().hex[:10].upper()}"
        return {
            "id": file_id,
            "name": name,
            "title": name,
            "mimetype": "application/octet-stream",
            "filetype": name.rpartition(".")[2] or "binary",
            "user": self.person.id,
            "mode": "hosted",
            "size": 0,
            "is_external": False,
            "url_private": f"https://files.invalid/{file_id}/{name}",
        }
