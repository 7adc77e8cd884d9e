"""The store's ports for upkeep: deleting, restoring, changed channel ids, Slack's limits, and the database's health."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass
from enum import Enum
from typing import Protocol

from bot.domain.requests.request import RequestKind
from bot.domain.slack_limits import Grant, SlackLimits


@dataclass(frozen=True)
class LongOpenJobs:
    """The number of jobs open for long without a change, and the age of the oldest in seconds."""

    count: int
    oldest: float


@dataclass(frozen=True)
class QueueLength:
    """How many rows of a queue are open, and for how many seconds the oldest has been due."""

    queue: str
    rows: int
    overdue: float


@dataclass(frozen=True)
class Backlog:
    """What waits: the queues, the jobs that are polled by status, and how many calls of each Slack method count towards
    its limit now.
    """

    queues: Sequence[QueueLength]
    jobs: Mapping[str, int]
    slack_calls: Mapping[str, int]


@dataclass(frozen=True)
class Deleted:
    """How much was deleted; falsy if nothing was."""

    jobs: int = 0
    requests: int = 0
    notices: int = 0
    early_replies: int = 0
    quotations: int = 0
    """Finished requests of other people whose context was deleted."""
    others: int = 0
    """Entries of the audit trail, drafts, preferences, Homes, counted requests, versions of messages."""

    def __add__(self, other: "Deleted") -> "Deleted":
        return Deleted(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))

    def __bool__(self) -> bool:
        return any(astuple(self))


@dataclass(frozen=True)
class HeldRequest:
    """A request whose person was asked something."""

    thread_id: str
    person_id: str


class OldRows(Enum):
    """Kinds of rows that are deleted once they are old. Each has a time from which its age counts."""

    AUDIT = "audit"
    """Entries of the audit trail, since they were made."""
    COUNTED = "counted"
    """Requests counted towards somebody's limit, since then."""
    DRAFTS = "drafts"
    """Drafts, since they last changed."""
    HOMES = "homes"
    """App Homes, since somebody last opened them; opening one creates it again."""
    MESSAGE_VERSIONS = "message_versions"
    """Versions of messages, since they were first seen."""
    SLACK_CALLS = "slack_calls"
    """Calls to Slack in channels, since they no longer count."""


class Retention(Protocol):
    """Deletes data."""

    async def delete_finished(self, *, before: float, limit: int) -> int:
        """Deletes at most `limit` threads, with everything that belongs to them, that have not changed since `before`
        and have nothing open: no polling, no request, no notice. Returns how many.
        """

    async def delete_old(self, kind: OldRows, *, before: float, limit: int) -> int:
        """Deletes at most `limit` rows of a kind from before a time, oldest first; returns how many."""

    async def delete_channel_ids(self, *, before: float, limit: int) -> int:
        """Deletes at most `limit` channel ids that were recorded before a time and that no job uses any more; returns
        how many. Those in use count as recorded now.
        """

    async def delete_held(self, *, before: float, limit: int) -> Sequence[HeldRequest]:
        """Deletes at most `limit` requests whose person was asked something before a time and never answered. Returns
        them, with their threads locked.
        """

    async def forget_person(self, person_id: str, *, limit: int) -> Deleted:
        """Deletes everything of a person, open or not: threads they began with all that belongs to them, and their
        requests and notices in other threads, audit entries, preferences and drafts; at most `limit` of each. Call it
        until nothing is deleted.
        """

    async def forget_channel(self, channel_id: str, *, limit: int) -> Deleted:
        """Deletes everything of a channel, open or not: at most `limit` threads with all that belongs to them, as many
        audit entries, early replies and versions of messages. Call it until nothing is deleted.
        """


@dataclass(frozen=True)
class Step:
    """One step of a pass through a table: the last id, how many rows it changed, and how many it had to skip."""

    last: str
    changed: int
    left: int


class Quotations(Protocol):
    """Deletes what other people's requests and threads contain of somebody."""

    async def forget_quoted(self, *, after: str, limit: int) -> Step | None:
        """Deletes the context of the next `limit` requests after an id, except of unfinished ones. None if there are no
        more.
        """

    async def forget_repeated(self, *, after: str, limit: int) -> Step | None:
        """The same, by key, for notices about posts that could not be delivered: they may repeat another person's
        words.
        """

    async def forget_taking_part(self, person_id: str, *, after: str, limit: int) -> Step | None:
        """The same for somebody's part in threads, except as who muted a job or stopped work that continues."""


class Restoration(Protocol):
    """Marks as uncertain, in a database restored from a backup, what may have been sent since the backup."""

    async def mark_requests_in_doubt(self) -> int:
        """Marks requests that were on their way to the agent as possibly arrived; returns how many. Those not sent yet
        count as never tried (`Request.restored`).
        """

    async def open_of_kinds(self, kinds: Collection[RequestKind]) -> Sequence[str]:
        """Returns the ids of all open requests of these kinds, oldest first."""

    async def open_threads(self) -> Sequence[str]:
        """Returns the ids of all threads with a poll, an open request or an open notice."""

    async def mark_notices_in_doubt(self) -> int:
        """Marks open notices to be looked for in Slack before they are posted; returns how many."""

    async def mark_reactions_in_doubt(self, *, after: int, limit: int) -> int | None:
        """Marks the replies of the next `limit` notices after an id as possibly carrying any reaction; returns the last
        of these ids, None if there are no more.
        """


class ChannelIds(Protocol):
    """The ids of channels whose id Slack changed."""

    async def changed(self, old: str, new: str, at: float) -> None:
        """Records that a channel has another id since a time; in any order, and any number of times."""

    async def all_of(self, channel_id: str) -> Sequence[str]:
        """Returns all ids of a channel, given any: first the one that rows use, last the newest."""


class SlackCalls(Protocol):
    """The recent calls to Slack by all processes."""

    async def take(self, method: str, wanted: int, limits: SlackLimits, *, yields: bool = False) -> Grant:
        """Takes up to `wanted` calls of a method that is not called in threads. `yields`: see Budget."""

    async def refused(self, method: str, channel_id: str, retry_after: float, limits: SlackLimits) -> None:
        """Records a 429: nobody calls the method for this many seconds, in this channel if its limit is per channel."""

    async def posted(self, channel_id: str, *, failed: bool) -> None:
        """Records whether a post in a channel failed, other than by a 429."""


class DatabaseCheck(Protocol):
    """Checks whether the database works."""

    async def try_write(self) -> None:
        """Writes about as much as a person's request and leaves nothing behind, so that it fails if nothing can be
        recorded: the disk is full, the database is read-only or locked by another program.
        """

    async def long_open(self, *, before: float, limit: int) -> LongOpenJobs:
        """Returns jobs that are still polled and have not changed since `before`, among the `limit` that are polled
        next.
        """


class Backlogs(Protocol):
    """What waits in the database."""

    async def read(self, methods: Collection[str]) -> Backlog:
        """Reads it, with the calls of these Slack methods. The cost depends on what is open, not on what has ended."""
