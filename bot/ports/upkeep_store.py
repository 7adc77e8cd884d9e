"""The small ports of the store that keep it in order: deleting, ids that Slack changed, and how the database is."""

from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass
from typing import Protocol

from bot.domain.requests.request import RequestKind
from bot.domain.slack_limits import Grant, SlackLimits


@dataclass(frozen=True)
class LongOpenJobs:
    """How many jobs have been open for long without a change, and for how many seconds the oldest has."""

    count: int
    oldest: float


@dataclass(frozen=True)
class Deleted:
    """How much was deleted; false where that is nothing."""

    jobs: int = 0
    requests: int = 0
    notices: int = 0
    early_replies: int = 0
    quotations: int = 0
    """Finished requests of others, of which what went along was deleted."""
    others: int = 0
    """Entries of the audit trail, drafts, preferences, Homes, what counts towards a limit, versions of messages."""

    def __add__(self, other: "Deleted") -> "Deleted":
        return Deleted(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))

    def __bool__(self) -> bool:
        return any(astuple(self))


@dataclass(frozen=True)
class HeldRequest:
    """What somebody asked for, and was asked about."""

    thread_id: str
    person_id: str
    kind: RequestKind


class Retention(Protocol):
    """Deleting."""

    async def delete_finished(self, *, before: float, limit: int) -> int:
        """Deletes at most `limit` threads, with all that belongs to them, that did not change since `before` and in
        which nothing is open: no polling, no request, no notice. Returns how many.
        """

    async def delete_audit(self, *, before: float, limit: int) -> int:
        """Deletes at most `limit` entries of the audit trail from before a time, oldest first; returns how many."""

    async def delete_drafts(self, *, before: float, limit: int) -> int:
        """The same with drafts that were not changed since."""

    async def delete_homes(self, *, before: float, limit: int) -> int:
        """The same with App Homes that nobody opened since; whoever opens theirs again gets it anew."""

    async def delete_counted(self, *, before: float, limit: int) -> int:
        """The same with what counted towards somebody's limit before a time."""

    async def delete_message_versions(self, *, before: float, limit: int) -> int:
        """The same with the versions of messages that were first seen before a time."""

    async def delete_slack_calls(self, *, before: float, limit: int) -> int:
        """The same with what was called of Slack in channels, as long as that counts for nothing since."""

    async def delete_channel_ids(self, *, before: float, limit: int) -> int:
        """The same with ids of channels that were noted before a time and that no job is known by any more. Those that
        are needed count as noted now.
        """

    async def delete_held(self, *, before: float, limit: int) -> Sequence[HeldRequest]:
        """Deletes at most `limit` requests whose person was asked something before a time, and never answered; returns
        them, their threads locked.
        """

    async def forget_person(self, person_id: str, *, limit: int) -> Deleted:
        """Deletes what there is of a person, open or not: threads they began, with all that belongs to them, and
        requests and notices of theirs in others, what they did, prefer and have not sent; at most `limit` of each.
        Nothing deleted: nothing is left.
        """

    async def forget_channel(self, channel_id: str, *, limit: int) -> Deleted:
        """Deletes what there is of a channel, open or not: at most `limit` threads with all that belongs to them, as
        many entries of the audit trail, the early replies and versions of messages. Nothing deleted: nothing is left.
        """


@dataclass(frozen=True)
class Step:
    """One step of a walk through a table: up to which id it went, how many rows it changed, and how many it had to
    leave.
    """

    last: str
    changed: int
    left: int


class Quotations(Protocol):
    """Forgetting what others' requests and threads hold of somebody."""

    async def forget_quoted(self, *, after: str, limit: int) -> Step | None:
        """Deletes what went along with requests, those of `limit` after one by its id; leaves unfinished ones. None
        where there are no more.
        """

    async def forget_repeated(self, *, after: str, limit: int) -> Step | None:
        """The same with what told one person of a post that could not be delivered: it may repeat another's words. By
        the key.
        """

    async def forget_taking_part(self, person_id: str, *, after: str, limit: int) -> Step | None:
        """The same with somebody's part in threads; leaves who stopped work that goes on, or muted a job."""


class Restoration(Protocol):
    """Putting in doubt, in a database that was restored from a backup, what may have gone out since that was made."""

    async def doubt_requests(self) -> int:
        """Has what was on its way to the agent count as what may have arrived; returns how many such requests there
        are. What was not sent yet counts as never tried (`Request.restored`).
        """

    async def open_of_kinds(self, kinds: Collection[RequestKind]) -> Sequence[str]:
        """The ids of all open requests of these kinds, oldest first."""

    async def open_threads(self) -> Sequence[str]:
        """The ids of all threads in which anything is polled, asked for or owed."""

    async def doubt_notices(self) -> int:
        """Has what is owed to threads be looked for before it is posted; returns how many such notices there are."""

    async def doubt_reactions(self, *, after: int, limit: int) -> int | None:
        """Has replies count as carrying any reaction, those of `limit` notices after one, by its id; returns the last
        of these ids, None where there are no more.
        """


class ChannelIds(Protocol):
    """The ids of channels whose id Slack changed."""

    async def changed(self, old: str, new: str, at: float) -> None:
        """Notes that a channel has another id since a time; in any order, and as often as it is told."""

    async def all_of(self, channel_id: str) -> Sequence[str]:
        """All ids of a channel, by any of them: first that which rows go by, last the newest. Most have one."""


class SlackCalls(Protocol):
    """What all processes together called of Slack lately."""

    async def take(self, method: str, wanted: int, limits: SlackLimits) -> Grant:
        """Takes at most so many calls of a method that is called in no thread."""

    async def refused(self, method: str, channel_id: str, retry_after: float, limits: SlackLimits) -> None:
        """Records a 429: for so many seconds nobody calls the method, in that channel where it is bound to one."""


class DatabaseCheck(Protocol):
    """How the database is."""

    async def try_write(self) -> None:
        """Writes what a person's request would take in room and leaves nothing behind, so that the transaction fails
        where nothing can be recorded: the disk is full, the database is read-only, somebody else has it locked.
        """

    async def long_open(self, *, before: float, limit: int) -> LongOpenJobs:
        """Jobs that are still polled and have not changed since `before`, among the `limit` that are polled next."""
