"""Counts the refusals of a run: host names and ports, never paths."""

from collections import Counter
from collections.abc import Sequence

from bot.jobserver.settings.sandbox import host_name

MOST_NAMES = 20
"""Distinct names kept per run: a program could try any number."""
_SHOWN_NAMES = 5
_SHOWN_CHARACTERS = 80
UNREADABLE = "an address that is not a host name"
_HTTPS = 443


class EgressRefusals:
    """Counts what one run of a program was refused."""

    def __init__(self) -> None:
        self._counts = Counter[str]()
        self._others = 0

    def refused(self, host: str, port: int = 0) -> None:
        """Counts a host and port as the program named them."""
        self.note(_shown(host, port))

    def note(self, name: str) -> None:
        """Counts a refusal under a trusted name."""
        if name in self._counts or len(self._counts) < MOST_NAMES:
            self._counts[name] += 1
        else:
            self._others += 1

    @property
    def total(self) -> int:
        """How many refusals there were."""
        return self._counts.total() + self._others

    @property
    def in_words(self) -> tuple[str, ...]:
        """One sentence for people; empty if nothing was refused."""
        names = list(self._counts)
        shown, left = names[:_SHOWN_NAMES], len(names[_SHOWN_NAMES:]) + self._others
        more = f" and {left} more" if left else ""
        return (f"It tried to reach {', '.join(shown)}{more}: not allowed here.",) if names else ()

    def after(self, words: str) -> str:
        """Appends the refusals to the reason for a failure, since they may have caused it."""
        return " ".join((f"{words.rstrip('.')}.", *self.in_words)) if self._counts else words

    @property
    def in_log(self) -> Sequence[str]:
        """A line per name, with the number of refusals."""
        lines = [f"refused: {name} ({times})" for name, times in self._counts.items()]
        return [*lines, *([f"refused: others ({self._others})"] if self._others else [])]


def _shown(host: str, port: int) -> str:
    try:
        name = host_name(host)
    except ValueError:
        return UNREADABLE
    cut = name if len(name) <= _SHOWN_CHARACTERS else f"…{name[-_SHOWN_CHARACTERS:]}"
    return cut if port in {0, _HTTPS} else f"{cut}:{port}"
