"""How much strangers' requests may take of the memory, all together."""

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

_SHORTEST = 1.0
"""Seconds that each request counts as having lasted at least, so that among new ones the size decides."""

S = TypeVar("S", bound=Hashable)


@dataclass
class _Pending:
    since: float
    size: int = 0


class PendingBytes(Generic[S]):
    """Counts what each sender has sent of a request of which it is not known yet whether it counts for anything.

    Where that is more than `most` bytes, those make room that hold the most for the longest. Whoever holds less than
    a fair share never does: of `senders`, which is how many there are at most, not all can hold more.
    """

    def __init__(self, most: int, *, senders: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._fair_share = most // senders
        self._monotonic = monotonic
        self._pending: dict[S, _Pending] = {}
        self.total = 0

    def add(self, sender: S, size: int) -> Sequence[S]:
        """Counts what a sender has sent. Returns those that have to make room, which are forgotten."""
        pending = self._pending.setdefault(sender, _Pending(self._monotonic()))
        pending.size += size
        self.total += size
        over = []
        while self.total > self._most:
            over.append(self._costliest())
            self.forget(over[-1])
        return over

    def forget(self, sender: S) -> None:
        """Counts nothing of a sender any more: it is gone, was answered, or is known."""
        pending = self._pending.pop(sender, None)
        self.total -= pending.size if pending else 0

    def _costliest(self) -> S:
        now = self._monotonic()

        def cost(sender: S) -> tuple[bool, float]:
            pending = self._pending[sender]
            return pending.size > self._fair_share, pending.size * max(now - pending.since, _SHORTEST)

        return max(self._pending, key=cost)
