"""What was there before: Slack can bring the same kind thousands of times an hour, and the same message twice."""

from collections import OrderedDict

_MOST_KINDS = 200
_MOST_RECENT = 1_000


class FirstOccurrences:
    """Remembers what was there before, so that the log tells each thing once."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def is_first(self, kind: str) -> bool:
        """Returns whether this was not asked before; False too once there are too many different ones."""
        if kind in self._seen or len(self._seen) >= _MOST_KINDS:
            return False
        self._seen.add(kind)
        return True


class RecentOccurrences:
    """Remembers the last ones, so that people are told once what comes twice."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, None] = OrderedDict()

    def is_first(self, key: str) -> bool:
        """Returns whether this was not asked before, as far as that is remembered."""
        if key in self._seen:
            return False
        self._seen[key] = None
        if len(self._seen) > _MOST_RECENT:
            self._seen.popitem(last=False)
        return True
