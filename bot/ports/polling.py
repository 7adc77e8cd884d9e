"""Polling, as the store keeps it: which jobs are due, and what the polls came to."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.notices.messages import NewNotice
from bot.domain.threads.thread import Thread, ThreadState

NOTHING_KNOWN: Container[tuple[str, int]] = ()


@dataclass(frozen=True)
class ClaimedPoll:
    """A job to poll, with its thread as known when claimed."""

    thread: Thread


@dataclass(frozen=True, slots=True)
class KnownPoll:
    """A job to poll whose thread has the revision that its poller knows."""

    thread_id: str
    revision: int
    project: str
    job_id: str


@dataclass(frozen=True)
class PollResult:
    """The result of one poll of a thread as it was when claimed: its state now, and what people are told of it."""

    thread: Thread
    state: ThreadState
    notices: Sequence[NewNotice]
    card_changed: bool
    next_poll_in: float | None
    """Seconds till the next poll; None ends the polling."""

    @property
    def thread_id(self) -> str:
        """Of the thread."""
        return self.thread.id

    @property
    def revision(self) -> int:
        """Of the thread when it was claimed."""
        return self.thread.revision

    @property
    def changes(self) -> bool:
        """Whether more than the next due time is new."""
        return self.card_changed or bool(self.notices) or self.state != self.thread.state


@dataclass(frozen=True, slots=True)
class UnchangedPoll:
    """The result of a poll that showed what the one before did: only the next due time is new."""

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
        """Takes polls that are due and that nobody holds, the most overdue first. Threads that are `known`, by their
        ids and revisions, are not read; of others at most `most_read`, where that is said, are taken.
        """

    async def thread(self, poll: KnownPoll) -> Thread | None:
        """The thread of a claimed poll; None where it has another revision by now, or cannot be read."""

    async def save(self, results: Sequence[PollResult | UnchangedPoll], owner: str) -> int:
        """Saves the results of polls that `owner` still holds and whose thread has the same revision as when claimed:
        what is known, the notices, the card where it changed, the next due time; frees the claims. Others are dropped
        (their claim is freed, if `owner` still holds it, and they are due when whoever changed the thread said).
        Returns how many were saved. Unchanged ones cost one row update.
        """
