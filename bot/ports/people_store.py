"""The store's ports about people: audit, limits, drafts, preferences, Homes, early replies and message versions.

`bot.ports.transaction` says which transactions have them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.people.members import Preference
from bot.domain.requests.audit import AuditEntry, RecordedEntry
from bot.domain.requests.request import MessageVersion, Reply


@dataclass(frozen=True)
class ClaimedHome:
    """A Home to publish, with the page of jobs that its person sees."""

    person_id: str
    page: int


class Audit(Protocol):
    """Who did what, and when."""

    async def add(self, entry: AuditEntry) -> None:
        """Records an entry at the transaction's time."""

    async def read(self, *, since: float, until: float, after: int, limit: int) -> Sequence[RecordedEntry]:
        """Returns entries from `since` until `until`, oldest first. Of those at exactly `since`, only the ones with a
        number above `after` (0 for the first page). The next page begins with the last entry's time and number.
        """


class Limits(Protocol):
    """The number of requests that people have made recently."""

    async def free_at(self, person_id: str, request_id: str, *, limit: int, within: float) -> float | None:
        """Returns when somebody who has made `limit` requests within `seconds` may make another; None if they may now,
        as they always may if there is no limit (0) or the request is already counted. Other transactions about
        this person wait until this one ends; lock all threads first.
        """

    async def count(self, person_id: str, request_id: str) -> bool:
        """Counts an allowed request. False if it was counted before, because it is being prepared again."""


class Drafts(Protocol):
    """Text typed into a modal that was not submitted. `place`: where the modal was opened."""

    async def get(self, person_id: str, place: str) -> str:
        """Returns the text; empty if there is none."""

    async def save(self, person_id: str, place: str, text: str) -> None:
        """Replaces the text."""

    async def delete(self, person_id: str, place: str) -> None:
        """Deletes the text."""


class Preferences(Protocol):
    """People's preferences."""

    async def get(self, person_id: str) -> Preference:
        """Returns a person's preference, with defaults for what they never set."""

    async def save(self, person_id: str, preference: Preference) -> None:
        """Saves a preference."""


class Homes(Protocol):
    """The App Homes of people who have opened theirs."""

    async def opened(self, person_id: str, *, page: int = 0) -> None:
        """Records which page of their Home somebody sees, and makes the Home due at once."""

    async def changed(self, person_id: str, *, due_in: float) -> None:
        """Makes somebody's Home due in this many seconds, if they ever opened it."""

    async def claim(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedHome]:
        """Claims Homes that are due and unclaimed."""

    async def published(self, person_id: str, owner: str, *, again_in: float | None = None) -> None:
        """Frees a Home that `owner` holds; it is due again in this many seconds (None: when something changes). If
        others may have claimed it by now, it is due at once: what was published late may have replaced something newer.
        """


class EarlyReplies(Protocol):
    """Replies whose thread is unknown while a card is being posted to their channel: people can answer a card in Slack
    before we know its `ts`.
    """

    async def keep(self, reply: Reply) -> bool:
        """Stores a reply; False if no card that begins a thread is being posted. Of several versions of a reply, the
        newest is kept, whatever their order; one that does not name its thread only changes a stored one.
        """

    async def are_expected(self, channel_id: str, thread_ts: str) -> bool:
        """Returns whether a message may be a card that is being posted."""

    async def take(self, channel_id: str, thread_ts: str) -> Sequence[Reply]:
        """Removes and returns the replies stored for this thread, in the order they were written. Replies stored for
        other threads are returned, too, once no other card that begins a thread is being posted to the channel.
        """


class MessageVersions(Protocol):
    """Recently seen versions of messages. Slack delivers unacknowledged messages again, so an edit or a deletion can
    come before the message itself.
    """

    async def answer(self, version: MessageVersion) -> bool:
        """Records that the writer of a version gets a private answer; False if they got one for this version or a newer
        one.
        """

    async def note(self, version: MessageVersion) -> bool:
        """Records that a version came; False if a newer one came before. Other versions of the message wait for the end
        of this transaction. Call it before anything else is locked.
        """
