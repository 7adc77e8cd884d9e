"""The small ports of the store that are about people: what they did, wrote, prefer, have not sent yet, and look at.

Which of them a transaction has is told in `bot.ports.transaction`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.people.members import Preference
from bot.domain.requests.audit import AuditEntry, RecordedEntry
from bot.domain.requests.request import MessageVersion, Reply


@dataclass(frozen=True)
class ClaimedHome:
    """A Home to publish: the page of jobs that its person looks at."""

    person_id: str
    page: int


class Audit(Protocol):
    """Who did what, and when."""

    async def add(self, entry: AuditEntry) -> None:
        """Records that somebody did something, at the transaction's time."""

    async def read(self, *, since: float, until: float, after: int, limit: int) -> Sequence[RecordedEntry]:
        """Entries from `since` until `until`, oldest first. Of those at exactly `since`, only the ones with a number
        above `after` (0 for the first page). The next page begins with the last entry's time and number.
        """


class Limits(Protocol):
    """How much people have asked for lately."""

    async def free_at(self, person_id: str, request_id: str, *, limit: int, within: float) -> float | None:
        """When somebody who has asked for `limit` things within that many seconds may ask again; None: they may now,
        as they always may where there is no limit (0), or for a request that has been counted. Whoever else looks at
        this person's waits until the transaction ends; all threads that it locks are to be locked before.
        """

    async def count(self, person_id: str, request_id: str) -> bool:
        """Counts a request that is let through. False where it was counted before: it is prepared once more."""


class Drafts(Protocol):
    """What people typed into a modal and have not submitted. `place`: where it was opened."""

    async def get(self, person_id: str, place: str) -> str:
        """The text; empty where there is none."""

    async def save(self, person_id: str, place: str, text: str) -> None:
        """Keeps the text instead of an earlier one."""

    async def delete(self, person_id: str, place: str) -> None:
        """Forgets it."""


class Preferences(Protocol):
    """What people prefer."""

    async def get(self, person_id: str) -> Preference:
        """What somebody prefers, as far as they said."""

    async def save(self, person_id: str, preference: Preference) -> None:
        """Keeps it."""


class Homes(Protocol):
    """The App Homes of those who have opened theirs."""

    async def opened(self, person_id: str, *, page: int = 0) -> None:
        """Notes that somebody looks at a page of theirs, which is due at once."""

    async def changed(self, person_id: str, *, due_in: float) -> None:
        """Has somebody's Home be due in that many seconds, if they ever opened it."""

    async def claim(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedHome]:
        """Takes Homes that are due and that nobody holds."""

    async def published(self, person_id: str, owner: str, *, again_in: float | None = None) -> None:
        """Frees a Home that `owner` holds; it is due again in that many seconds (None: when something changes).
        Due at once is one that others may claim by now: what was published late may have replaced something newer.
        """


class EarlyReplies(Protocol):
    """Replies whose thread is unknown while a card is on its way into their channel: people can answer a card that
    Slack shows before we know where it is.
    """

    async def keep(self, reply: Reply) -> bool:
        """Keeps a reply; False, and nothing kept, where no card that begins a thread is on its way. Of several versions
        of a reply the newest is kept, whatever their order; one without its thread changes only what is kept.
        """

    async def take(self, channel_id: str, thread_ts: str) -> Sequence[Reply]:
        """Takes out the replies that were kept for this thread, in the order they were written. Those kept for others
        go too, once no card that begins a thread is on its way into the channel any more.
        """


class MessageVersions(Protocol):
    """Which versions of messages for Pagehand were seen, for a while: Slack brings what was not acknowledged again, so
    that an edit or a deletion can come before the message itself.
    """

    async def answer(self, version: MessageVersion) -> bool:
        """Notes that the writer of a version gets a private answer; False where they did, to this one or a newer."""

    async def note(self, version: MessageVersion) -> bool:
        """Notes that a version came; False where a newer one came before. Other versions of the same message wait for
        the end of this transaction, which does this before it locks anything else.
        """
