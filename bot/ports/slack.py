"""The seams to what Pagehand reads of Slack before a request is sent, and to the views that it shows."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.context.slack_files import FileContent, SlackFile, ThreadMessage
from bot.domain.people.home import HomeContent
from bot.domain.people.members import Channel, Member


class Members(Protocol):
    """Who somebody is. Raises only ChatError's classes, within a bounded time; ChatRejected for nobody's id."""

    async def member(self, person_id: str) -> Member:
        """The person, as Slack told within the last hour."""


class Groups(Protocol):
    """The user groups of the workspace."""

    async def members_of(self, group_ids: Collection[str]) -> frozenset[str]:
        """The ids of all who are in one of the groups, as Slack told within the last minutes. A group that Slack does
        not show has nobody in it. Raises ChatError where Slack could not be asked.
        """


class Channels(Protocol):
    """What a channel is. Raises only ChatError's classes, within a bounded time."""

    async def channel(self, channel_id: str) -> Channel:
        """The channel, as Slack told within the last minutes."""


class Conversations(Protocol):
    """What was said. Raises only ChatError's classes, each call within a bounded time."""

    async def thread(
        self, channel_id: str, thread_ts: str, *, after_ts: str = "", before_ts: str = "", limit: int = 51
    ) -> Sequence[ThreadMessage]:
        """The last messages of a thread, at most `limit`, oldest first, with names instead of ids: those after
        `after_ts` and before `before_ts`, without Pagehand's own. One more than is told shows that there are others.
        """


class Files(Protocol):
    """What is in files. Raises only ChatError's classes, each call within a bounded time."""

    async def look_up(self, file: SlackFile) -> SlackFile:
        """The file with what its reference lacks; the same where that is nothing. Raises ChatError."""

    async def read(self, file: SlackFile, *, max_bytes: int) -> FileContent:
        """The file, or its beginning where it is longer. Raises ChatError: ChatMissingScope where the app may not read
        files, ChatRejected where this one cannot be had.
        """


class Views(Protocol):
    """What Pagehand shows in Slack besides messages. Raises only ChatError's classes, within a bounded time."""

    async def publish_home(self, content: HomeContent) -> None:
        """Shows a person their Home."""


@dataclass(frozen=True)
class SlackReading:
    """What Pagehand reads of Slack before a request is sent."""

    members: Members
    groups: Groups
    channels: Channels
    conversations: Conversations
    files: Files
