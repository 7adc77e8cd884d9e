"""What a process remembers of something that can come without end: the newest."""

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class RecentDict(OrderedDict[K, V]):
    """Keeps the `most` values that were set last."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)


class RecentSet(RecentDict[str, None]):
    """Remembers the keys that were added last, for what Slack can send thousands of times, or twice."""

    def add(self, key: str) -> bool:
        """Returns whether a key is new, as far as they are remembered."""
        is_new = key not in self
        self[key] = None
        return is_new
