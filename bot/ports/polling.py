"""The store's port for polling: which jobs are due, and the results of polls."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.notices.messages import NewNotice
from bot.domain.threads.thread import Thread, ThreadState

NOTHING_KNOWN: Container[tuple[str, int]] = ()


@dataclass(frozen=True)
class ClaimedPoll:
    """A job to poll, with its thread at the time of the claim."""

    thread: Thread


@dataclass(frozen=True, slots=True)
class KnownPoll:
    """A job to poll whose thread still has the revision that its poller knows."""

    thread_id: str
    revision: int
    project: str
    job_id: str


@dataclass(frozen=True)
class PollResult:
    """The result of one poll: the thread at the time of the claim, its state now, and the resulting notices."""

    thread: Thread
    state: ThreadState
    notices: Sequence[NewNotice]
    card_changed: bool
    next_poll_in: float | None
    """Seconds until the next poll; None ends polling."""

    @property
    def thread_id(self) -> str:
        """The thread's id."""
        return self.thread.id

    @property
    def revision(self) -> int:
        """The thread's revision when it was claimed."""
        return self.thread.revision

    @property
    def changes(self) -> bool:
        """Whether anything besides the next due time is new."""
        return self.card_changed or bool(self.notices) or self.state != self.thread.state


@dataclass(frozen=True, slots=True)
class UnchangedPoll:
    """The result of a poll without news: only the next due time is new."""

    thread_id: str
    revision: int
    next_poll_in: float | None


class Polls(Protocol):
    """When each job is polled next, and by whom."""

    async def claim(
        self,
        owner: str,
        *,
        lease: float,
        limit: int,
        known: Container[tuple[str, int]] = NOTHING_KNOWN,
        most_read: int | None = None,
    ) -> Sequence[ClaimedPoll | KnownPoll]:
        """Claims polls that are due and unclaimed, the most overdue first. Threads that are `known`, by id and
        revision, are not read; of the others at most `most_read`, if given, are claimed.
        """

    async def thread(self, poll: KnownPoll) -> Thread | None:
        """Returns the thread of a claimed poll; None if its revision has changed, or if its row is unreadable."""

    async def save(self, results: Sequence[PollResult | UnchangedPoll], owner: str) -> int:
        """Saves the results of polls whose claim `owner` still holds and whose thread still has the revision it was
        claimed with: the state, the notices, the card if it changed, the next due time. Frees the claims. Other results
        are dropped; a claim that `owner` still holds is freed, and the poll keeps the due time that the change of
        the thread set. Returns how many were saved. An unchanged one costs one row update.
        """
