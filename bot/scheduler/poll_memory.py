"""What the last looks at jobs showed, where nothing came of it: the same again needs neither the thread nor a decision.

It is kept in the memory of one process, and may be forgotten at any time: that costs a decision, and changes nothing.
"""

from dataclasses import dataclass
from typing import TypeVar

from bot.domain.jobs.poll_pace import PollPace

T = TypeVar("T")

MAX_KNOWN = 50_000
"""Jobs of which the last look is known, a few hundred bytes each."""


@dataclass(frozen=True, slots=True)
class KnownLook:
    """A look of which nothing comes while the thread has this revision, and how the job is polled then."""

    revision: int
    fingerprint: bytes
    pace: PollPace

    def packed(self) -> "_Packed":
        """The same as a tuple, which the garbage collector leaves out, of however many jobs there are some."""
        pace = self.pace
        return self.revision, self.fingerprint, pace.changed_at, pace.until, pace.waits_for_link, pace.is_pending


_Packed = tuple[int, bytes, float, float | None, bool, bool]


class PollMemory:
    """The looks by thread. `in` it are pairs of a thread's id and revision."""

    def __init__(self, *, limit: int = MAX_KNOWN) -> None:
        self._limit = limit
        self._looks: dict[str, _Packed] = {}
        self._restless: dict[str, int] = {}
        """Threads whose job shows something else each time, of which nothing comes: by the revision of which this is
        known. To remember those would cost more than it saves.
        """

    def __contains__(self, thread: object) -> bool:
        match thread:
            case (str(thread_id), int(revision)):
                look = self._looks.get(thread_id)
                return look is not None and look[0] == revision
        return False

    def get(self, thread_id: str) -> KnownLook | None:
        """Returns what is known of a thread's job."""
        packed = self._looks.get(thread_id)
        return None if packed is None else KnownLook(packed[0], packed[1], PollPace(*packed[2:]))

    def remember(self, thread_id: str, look: KnownLook) -> None:
        """Notes a look of which nothing came, unless the one before it at this revision was another."""
        before = self._looks.pop(thread_id, None)
        if before is not None and before[0] == look.revision and before[1] != look.fingerprint:
            _add(self._restless, thread_id, look.revision, self._limit)
        elif self._restless.get(thread_id) != look.revision:
            self._restless.pop(thread_id, None)
            _add(self._looks, thread_id, look.packed(), self._limit)

    def forget(self, thread_id: str) -> None:
        """Forgets a thread that is not polled any more, or of whose look something came."""
        self._looks.pop(thread_id, None)
        self._restless.pop(thread_id, None)


def _add(kept: dict[str, T], thread_id: str, value: T, limit: int) -> None:
    kept[thread_id] = value
    if len(kept) > limit:
        del kept[next(iter(kept))]
