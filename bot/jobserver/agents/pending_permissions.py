"""What a person was asked to allow, till their reply says so or not."""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path


class PendingPermissions:
    """What was asked for last, by a job's HOME, until the job's next instruction answers it."""

    _MOST = 1000

    def __init__(self) -> None:
        self._asked: OrderedDict[Path, tuple[str, ...]] = OrderedDict()

    def keep(self, home: Path, asked: Sequence[str]) -> None:
        if asked:
            self._asked[home] = tuple(asked)
        if len(self._asked) > self._MOST:
            self._asked.popitem(last=False)

    def granted(self, home: Path, reply: str) -> tuple[str, ...]:
        """Returns what a reply allows; whatever it says, nothing is open any more."""
        asked = self._asked.pop(home, ())
        return asked if says_yes(reply) else ()


def says_yes(reply: str) -> bool:
    """Whether a reply begins with the word yes."""
    words = reply.strip().casefold()
    return words.startswith("yes") and not words[3:4].isalnum()
