"""Lets the log tell each thing once: Slack could bring the same kind thousands of times an hour."""

_MOST_KINDS = 200


class FirstOccurrences:
    """Remembers what was there before."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def is_first(self, kind: str) -> bool:
        """Returns whether this was not asked before; False too once there are too many different ones."""
        if kind in self._seen or len(self._seen) >= _MOST_KINDS:
            return False
        self._seen.add(kind)
        return True
