"""The last polls without consequences: the same result again needs neither the thread nor a decision.

They are kept in the memory of one process, and may be forgotten at any time: that costs a decision and changes nothing.
"""

from dataclasses import dataclass
from typing import TypeVar

from bot.domain.jobs.poll_pace import PollPace

T = TypeVar("T")

MAX_KNOWN = 50_000
"""Jobs whose last poll is remembered, at a few hundred bytes each."""


@dataclass(frozen=True, slots=True)
class KnownLook:
    """A poll without consequences while the thread has this revision, and the job's polling then."""

    revision: int
    fingerprint: bytes
    pace: PollPace

    def packed(self) -> "_Packed":
        """The same as a tuple, which the garbage collector skips however many jobs there are."""
        pace = self.pace
        return self.revision, self.fingerprint, pace.changed_at, pace.until, pace.waits_for_link, pace.slow_for


_Packed = tuple[int, bytes, float, float | None, bool, float]


class PollMemory:
    """The remembered polls by thread. `in` takes a pair of a thread's id and revision."""

    def __init__(self, *, limit: int = MAX_KNOWN) -> None:
        self._limit = limit
        self._looks: dict[str, _Packed] = {}
        self._restless: dict[str, int] = {}
        """Threads whose job shows something new at each poll, though without consequences, by revision. Remembering
        those polls would cost more than it saves.
        """

    def __contains__(self, thread: object) -> bool:
        match thread:
            case (str(thread_id), int(revision)):
                look = self._looks.get(thread_id)
                return look is not None and look[0] == revision
        return False

    def get(self, thread_id: str) -> KnownLook | None:
        """Returns the remembered poll of a thread's job."""
        packed = self._looks.get(thread_id)
        return None if packed is None else KnownLook(packed[0], packed[1], PollPace(*packed[2:]))

    def remember(self, thread_id: str, look: KnownLook) -> None:
        """Remembers a poll without consequences, unless the one before it at this revision was different."""
        before = self._looks.pop(thread_id, None)
        if before is not None and before[0] == look.revision and before[1] != look.fingerprint:
            _add(self._restless, thread_id, look.revision, self._limit)
        elif self._restless.get(thread_id) != look.revision:
            self._restless.pop(thread_id, None)
            _add(self._looks, thread_id, look.packed(), self._limit)

    def forget(self, thread_id: str) -> None:
        """Forgets a thread that is no longer polled, or whose poll had consequences."""
        self._looks.pop(thread_id, None)
        self._restless.pop(thread_id, None)


def _add(kept: dict[str, T], thread_id: str, value: T, limit: int) -> None:
    kept[thread_id] = value
    if len(kept) > limit:
        del kept[next(iter(kept))]
