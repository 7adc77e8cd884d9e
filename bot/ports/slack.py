"""Slack: what Pagehand posts, what it reads before a request is sent, and the views it shows."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from bot.domain.delivery import ReactionCall
from bot.domain.gaps import Missed, PastMessage
from bot.domain.messages import FileContent, SlackFile, ThreadMessage
from bot.domain.people import Account, ChannelInfo, HomeContent, Member
from bot.domain.requests.request import Reply
from bot.domain.threads.thread import NO_FOLLOW_UPS, FollowUpCounts, Thread
from bot.notices.notice import Notice


class Members(Protocol):
    """Looks up people. Raises only ChatError's classes, within a bounded time; ChatRejected for an unknown id."""

    async def member(self, person_id: str) -> Member:
        """Returns the person, as Slack described them within the last minutes."""

    def known_member(self, person_id: str) -> Member | None:
        """Returns a person without asking Slack; None if that takes a call."""

    def known_account(self, user_id: str) -> Account | None:
        """Returns whose an account is without asking Slack; None if that takes a call. An unknown id is no person's."""


class Groups(Protocol):
    """The user groups of the workspace."""

    async def members_of(self, group_ids: Collection[str]) -> frozenset[str]:
        """Returns the members of all these groups, as of the last minutes. A group that Slack does not show is empty.
        Raises ChatError if Slack could not be asked.
        """


class ChannelReader(Protocol):
    """Looks up channels. Raises only ChatError's classes, within a bounded time."""

    async def channel(self, channel_id: str) -> ChannelInfo:
        """Returns the channel, as Slack described it within the last minutes."""


class Conversations(Protocol):
    """Reads messages. Raises only ChatError's classes, each call within a bounded time."""

    async def thread(
        self, channel_id: str, thread_ts: str, *, after_ts: str = "", before_ts: str = "", limit: int = 51
    ) -> Sequence[ThreadMessage]:
        """Returns the last messages of a thread, at most `limit`, oldest first, with names instead of ids: those after
        `after_ts` and before `before_ts`, without Pagehand's own. Ask for one more than you show to learn whether there
        are others.
        """


class CurrentMessages(Protocol):
    """Reads what became of messages. Raises only ChatError's classes."""

    async def versions(self, channel_id: str, thread_ts: str, *, since_ts: str) -> Mapping[str, Reply | None]:
        """Returns the messages of a thread from `since_ts` on, by their `ts`: as their last edit, None if they are as
        they were written. Those that were deleted are missing. Without `thread_ts`, those outside threads. Raises
        ChatError: ChatRejected if Slack does not show all of them.
        """


T = TypeVar("T")


@dataclass(frozen=True)
class HistoryPage(Generic[T]):
    """A part of a long answer; `next_cursor` is empty on the last page."""

    items: Sequence[T]
    next_cursor: str = ""


class PastMessages(Protocol):
    """Reads what was written while nobody listened. Raises only ChatError's classes, each call within a bounded time;
    ChatRateLimited while others need Slack's limits.
    """

    async def messages(
        self, channel_id: str, thread_ts: str, *, oldest: str, cursor: str = ""
    ) -> HistoryPage[PastMessage]:
        """Returns messages after `oldest`: of a thread, oldest first, each page with its first message; without
        `thread_ts` what is outside threads, newest first.
        """

    async def channels(self, cursor: str = "") -> HistoryPage[str]:
        """Returns the channels that Pagehand is in, without direct messages."""


class MissedEvents(Protocol):
    """Handles what Slack could not deliver."""

    async def handle(self, missed: Missed, channel: ChannelInfo) -> None:
        """Handles a message as if its events had been delivered. Raises NotRecorded; handling it twice does no harm."""


class FileReader(Protocol):
    """Reads files. Raises only ChatError's classes, each call within a bounded time."""

    async def look_up(self, file: SlackFile) -> SlackFile:
        """Returns the file with everything that a reference to it may lack. Raises ChatError."""

    async def read(self, file: SlackFile, *, max_bytes: int) -> FileContent:
        """Returns the file, or its beginning if it is longer. Raises ChatError: ChatMissingScope if the app may not
        read files, ChatRejected if this one is not available.
        """


class HomeViews(Protocol):
    """Shows views. Raises only ChatError's classes, within a bounded time."""

    async def publish_home(self, content: HomeContent) -> None:
        """Publishes a person's Home."""


@dataclass(frozen=True)
class SlackReading:
    """What Pagehand reads from Slack before a request is sent."""

    members: Members
    groups: Groups
    channels: ChannelReader
    conversations: Conversations
    versions: CurrentMessages
    files: FileReader


class Chat(Protocol):
    """Posts to Slack. Every method raises only ChatError's classes, within a bounded time."""

    async def post_card(
        self, thread: Thread, key: str, *, follow_ups: FollowUpCounts = NO_FOLLOW_UPS, without_blocks: bool = False
    ) -> str:
        """Posts the card and returns its `ts`: into the thread, or, if the thread has no first message yet, into the
        channel.
        """

    async def update_card(
        self, thread: Thread, *, follow_ups: FollowUpCounts = NO_FOLLOW_UPS, without_blocks: bool = False
    ) -> None:
        """Updates the card to the thread's newest state."""

    async def post(self, thread: Thread, notice: Notice) -> str:
        """Posts the notice into the thread (as plain text if `notice.without_blocks`) and returns its `ts`.
        ChatRejected if the thread has no card.
        """

    async def update(self, thread: Thread, notice: Notice, ts: str) -> None:
        """Updates a post to what the notice says now."""

    async def upload(self, name: str, content: bytes, *, words: str) -> str:
        """Uploads a picture that nobody sees yet, with words for those who cannot see it. Returns its id once Slack can
        show it; the caller waits for as long as it likes.
        """

    async def find(self, thread: Thread, key: str) -> str | None:
        """Returns the `ts` of the message with this key: in the thread or, while the thread has no `ts`, in the
        channel since the thread was recorded.
        """

    async def react(self, thread: Thread, message_ts: str, call: ReactionCall) -> None:
        """Adds a reaction to a message or removes one. Doing it twice has the same effect as once."""

    async def tell(self, thread: Thread, notice: Notice, *, follow_ups: FollowUpCounts = NO_FOLLOW_UPS) -> None:
        """Tells the person whom the notice is for: in the channel if possible, else in a direct message."""

    async def join(self, channel_id: str) -> None:
        """Joins a public channel. ChatNotInChannel if only an invitation helps (it is private, or Pagehand may not
        join), ChatRejected otherwise.
        """


class DisplayNames(Protocol):
    """The names of the workspace's people, channels and user groups."""

    async def names(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Returns display names by id. A private one is replaced by a neutral description, and those not available
        quickly are left out. Never raises.
        """
