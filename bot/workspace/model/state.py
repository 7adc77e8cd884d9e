"""The state of a workspace: users, channels, membership, messages, reactions.

Observers hear of every change, in order, after it has been made; who waits for a condition checks it after each change.
"""

import asyncio
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import chain
from typing import TypeVar

from bot.workspace.model.block_kit import assign_ids
from bot.workspace.model.entities import (
    Change,
    ChangeKind,
    Channel,
    FileStore,
    Message,
    Observer,
    SlackError,
    Team,
    Timestamps,
    User,
    UserGroup,
    microseconds,
    timestamp_of,
)

Found = TypeVar("Found")


class ChangeSignal:
    """Wakes those who wait for a condition after each change: in the workspace, of a call, of a delivery."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Event] = set()

    def notify(self) -> None:
        for event in self._waiting:
            event.set()

    async def wait_for(
        self,
        predicate: Callable[[], Found],
        timeout: float = 30.0,  # noqa: ASYNC109 - the word of asyncio's own wait_for
        *,
        what: str = "the condition",
    ) -> Found:
        """Waits until the predicate returns a true value, and returns it.

        Args:
            predicate: Called after every change; it must be quick and change nothing.
            timeout: Seconds.
            what: Names the condition in the error.

        Raises:
            TimeoutError: It did not become true in time.
        """
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            async with asyncio.timeout(timeout):
                while not (found := predicate()):
                    event.clear()
                    await event.wait()
                return found
        except TimeoutError:
            raise TimeoutError(f"{what} was not met within {timeout} s") from None
        finally:
            self._waiting.discard(event)


class Conversation:
    """The messages of one channel, by timestamp, with an index of its threads."""

    def __init__(self) -> None:
        self._by_ts: dict[str, Message] = {}
        self._order: list[int] = []
        self._threads: dict[str, list[str]] = {}

    def __iter__(self) -> Iterator[Message]:
        """Yields all messages, including replies, oldest first."""
        return (self._by_ts[timestamp_of(moment)] for moment in self._order)

    def get(self, ts: str) -> Message | None:
        return self._by_ts.get(ts)

    def add(self, message: Message) -> None:
        self._by_ts[message.ts] = message
        insort(self._order, microseconds(message.ts))
        if message.is_reply and message.thread_ts:
            self._threads.setdefault(message.thread_ts, []).append(message.ts)

    def remove(self, message: Message) -> None:
        del self._by_ts[message.ts]
        del self._order[bisect_left(self._order, microseconds(message.ts))]
        if message.is_reply and message.thread_ts:
            self._threads[message.thread_ts].remove(message.ts)

    def replies(self, thread_ts: str) -> list[Message]:
        """Returns the replies of a thread, oldest first, without its first message."""
        return [self._by_ts[ts] for ts in self._threads.get(thread_ts, ())]

    def reply_count(self, thread_ts: str) -> int:
        return len(self._threads.get(thread_ts, ()))

    def newest_first(self, oldest: int, latest: int) -> Iterator[Message]:
        """Yields the messages between two times in microseconds, both inclusive, with replies."""
        start, end = bisect_left(self._order, oldest), bisect_right(self._order, latest)
        return (self._by_ts[timestamp_of(self._order[index])] for index in range(end - 1, start - 1, -1))

    def thread(self, thread_ts: str) -> list[Message]:
        """Returns a thread with its first message."""
        first = self._by_ts.get(thread_ts)
        return list(chain([first] if first else [], self.replies(thread_ts)))


TOMBSTONE = "This message was deleted."
SLACKBOT = "USLACKBOT"


class State:
    """A workspace's whole state. Users and channels can be found by id, and also by name where people use names."""

    def __init__(self, team: Team, now: Callable[[], float] = time.time) -> None:
        self.team = team
        self.now = now
        self.timestamps = Timestamps(now)
        self.teams: dict[str, Team] = {team.id: team}
        self.users: dict[str, User] = {}
        self.groups: dict[str, UserGroup] = {}
        self.channels: dict[str, Channel] = {}
        self.files = FileStore(now)
        self.observers: list[Observer] = []
        self._conversations: dict[str, Conversation] = {}
        self._ephemerals: dict[str, dict[str, Message]] = {}

    # users and channels

    def add_user(self, user: User) -> User:
        self.users[user.id] = user
        return user

    def find_user(self, name: str) -> User | None:
        """Returns a user by id, name or ``@name``."""
        bare = name.removeprefix("@")
        return self.users.get(bare) or next((user for user in self.users.values() if user.name == bare), None)

    def user_id(self, name: str) -> str | None:
        """Returns the id of the user with exactly this name."""
        found = self.find_user(name)
        return found.id if found and found.name == name else None

    def group_id(self, handle: str) -> str | None:
        """Returns the id of the user group with exactly this handle."""
        return next((group.id for group in self.groups.values() if group.handle == handle), None)

    def add_channel(self, channel: Channel) -> Channel:
        self.channels[channel.id] = channel
        self._conversations.setdefault(channel.id, Conversation())
        self._notify("channel_created", channel, channel.creator)
        return channel

    def find_channel(self, name: str) -> Channel | None:
        """Returns a channel by id, name or ``#name``."""
        bare = name.removeprefix("#")
        if found := self.channels.get(bare):
            return found
        return next((c for c in self.channels.values() if not c.is_im and c.name == bare), None)

    def channel_id(self, name: str) -> str | None:
        """Returns the id of the channel with exactly this name."""
        found = self.find_channel(name)
        return found.id if found and found.name == name else None

    def direct_channel(self, bot: str, user: str) -> Channel:
        """Returns the direct conversation of a bot and a person, creating it if needed."""
        for channel in self.channels.values():
            if channel.is_im and channel.user == user and bot in channel.members:
                return channel
        members = [bot, user]
        created = Channel(f"D0{user[1:]}", "", int(self.now()), bot, is_im=True, user=user, members=members)
        return self.add_channel(created)

    def join(self, channel: Channel, user: str, inviter: str | None = None) -> None:
        """Makes a user a member and posts the join message. Does nothing for a member."""
        if user in channel.members:
            return
        self._require_unarchived(channel)
        channel.members.append(user)
        text = f"<@{user}> has joined the channel"
        self._add(Message(channel.id, self.timestamps.next(), user, text, subtype="channel_join", inviter=inviter))
        self._notify("member_joined", channel, user, inviter=inviter)

    def leave(self, channel: Channel, user: str) -> None:
        if user not in channel.members:
            return
        channel.members.remove(user)
        text = f"<@{user}> has left the channel"
        self._add(Message(channel.id, self.timestamps.next(), user, text, subtype="channel_leave"))
        self._notify("member_left", channel, user)

    def set_archived(self, channel: Channel, actor: str, *, archived: bool) -> None:
        if channel.is_archived != archived:
            channel.is_archived = archived
            self._notify("channel_archived" if archived else "channel_unarchived", channel, actor)

    def open_home(self, bot: str, user: str, tab: str) -> None:
        """Records that a person has opened a tab of the App Home, ``home`` or ``messages``."""
        self._notify("home_opened", self.direct_channel(bot, user), user, name=tab)

    # messages

    def conversation(self, channel: Channel) -> Conversation:
        return self._conversations[channel.id]

    def message(self, channel: Channel, ts: str) -> Message:
        if found := self.conversation(channel).get(ts):
            return found
        raise SlackError("message_not_found")

    def post(self, message: Message) -> Message:
        """Adds a message to its channel with a new timestamp. A reply to a reply joins the same thread."""
        channel = self.channels[message.channel]
        self._require_unarchived(channel)
        message.ts = self.timestamps.next()
        if message.thread_ts is not None:
            root = self.conversation(channel).get(message.thread_ts)
            if root is None:
                raise SlackError("thread_not_found")
            message.thread_ts = root.thread_ts or root.ts
        assign_ids(message.blocks)
        return self._add(message)

    def edit(self, message: Message, actor: str, **fields: object) -> Message:
        """Changes fields of a message."""
        channel = self.channels[message.channel]
        self._require_unarchived(channel)
        previous = deepcopy(message)
        for name, value in fields.items():
            setattr(message, name, value)
        assign_ids(message.blocks)
        self._notify("message_changed", channel, actor, message=message, previous=previous)
        return message

    def delete(self, message: Message, actor: str) -> None:
        """Removes a message. A thread's first message with replies leaves a tombstone."""
        channel = self.channels[message.channel]
        self._require_unarchived(channel)
        conversation = self.conversation(channel)
        previous = deepcopy(message)
        if conversation.reply_count(message.ts):
            fields = {"text": TOMBSTONE, "user": SLACKBOT, "subtype": "tombstone", "blocks": None}
            self.edit(message, actor, **fields, attachments=None, bot_id=None, metadata=None, files=None, reactions={})
            return
        conversation.remove(message)
        self._notify("message_deleted", channel, actor, message=previous, previous=previous)

    def _add(self, message: Message) -> Message:
        channel = self.channels[message.channel]
        self.conversation(channel).add(message)
        self._notify("message_posted", channel, message.user, message=message)
        return message

    # ephemeral messages, which one person sees

    def show_ephemeral(self, message: Message) -> Message:
        channel = self.channels[message.channel]
        message.ts = self.timestamps.next()
        assign_ids(message.blocks)
        self._ephemerals.setdefault(channel.id, {})[message.ts] = message
        self._notify("ephemeral_shown", channel, message.user, message=message)
        return message

    def ephemeral(self, channel: Channel, ts: str, user: str) -> Message | None:
        found = self._ephemerals.get(channel.id, {}).get(ts)
        return found if found and found.ephemeral_to == user else None

    def ephemerals(self, channel: Channel, user: str) -> list[Message]:
        return [m for m in self._ephemerals.get(channel.id, {}).values() if m.ephemeral_to == user]

    # files

    def channels_of_file(self, file_id: str) -> list[Channel]:
        """Returns the conversations that contain a file."""
        return [
            channel
            for channel in self.channels.values()
            if any(file.id == file_id for m in self.conversation(channel) for file in m.files or ())
        ]

    # reactions

    def react(self, message: Message, user: str, name: str) -> None:
        self._require_unarchived(self.channels[message.channel])
        users = message.reactions.setdefault(name, [])
        if user in users:
            raise SlackError("already_reacted")
        users.append(user)
        self._notify("reaction_added", self.channels[message.channel], user, message=message, name=name)

    def unreact(self, message: Message, user: str, name: str) -> None:
        self._require_unarchived(self.channels[message.channel])
        users = message.reactions.get(name, [])
        if user not in users:
            raise SlackError("no_reaction")
        users.remove(user)
        if not users:
            del message.reactions[name]
        self._notify("reaction_removed", self.channels[message.channel], user, message=message, name=name)

    def _require_unarchived(self, channel: Channel) -> None:
        if channel.is_archived:
            raise SlackError("is_archived")

    def _notify(
        self,
        kind: ChangeKind,
        channel: Channel,
        actor: str,
        *,
        message: Message | None = None,
        previous: Message | None = None,
        name: str = "",
        inviter: str | None = None,
    ) -> None:
        at = message.ts if kind == "message_posted" and message else self.timestamps.next()
        change = Change(kind, channel.id, actor, at, message, previous, name, inviter)
        for observer in tuple(self.observers):
            observer(change)
