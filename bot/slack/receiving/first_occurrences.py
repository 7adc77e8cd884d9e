"""Remembers earlier payloads: Slack can send a kind of payload thousands of times an hour, and a message twice."""

from bot.slack.sending.expiring_cache import RecentDict

_MOST_KINDS = 200
_MOST_RECENT = 1_000


class FirstOccurrences:
    """Remembers kinds, so that each is logged once."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def is_first(self, kind: str) -> bool:
        """Returns whether a kind is new; always False once there are too many kinds."""
        if kind in self._seen or len(self._seen) >= _MOST_KINDS:
            return False
        self._seen.add(kind)
        return True


class RecentOccurrences:
    """Remembers the latest keys, so that people are told something once even if its cause comes twice."""

    def __init__(self) -> None:
        self._seen = RecentDict[str, None](_MOST_RECENT)

    def is_first(self, key: str) -> bool:
        """Returns whether a key is new, as far as it is remembered."""
        if key in self._seen:
            return False
        self._seen[key] = None
        return True
