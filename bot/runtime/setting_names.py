"""Variables with a program's prefix that are none of its settings: misspelt, removed, or unknown."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

_MISSPELT = 2
"""Letters that differ from a setting's name."""
_SERVICE = re.compile(r"\w+_(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)")
_SERVICE_ADDRESS = re.compile(r"(?:tcp|udp|sctp)://.*")


def is_injected(name: str, value: str) -> bool:
    """Whether Kubernetes sets a variable in each container, for a service that has the name of one of our programs."""
    return bool(_SERVICE.fullmatch(name) or (name.endswith("_PORT") and _SERVICE_ADDRESS.fullmatch(value)))


@dataclass(frozen=True)
class SettingNames:
    """The variables of one program.

    Attributes:
        known: All of them, without `_FILE`.
        prefixes: With which they begin; other variables are not judged.
        foreign: The beginning of those that belong to another program.
        removed: Names of former settings, with what to do instead.
    """

    known: Collection[str]
    prefixes: tuple[str, ...]
    foreign: str = "\0"
    removed: Mapping[str, str] = field(default_factory=dict)

    def misspelt(self, environ: Mapping[str, str]) -> list[str]:
        """Returns a sentence about each variable that is almost a setting."""
        unknown = [name for name in self._unknown(environ) if name not in self.removed]
        return [
            f"{name} is unknown: is {meant} meant? Correct its name, or remove it"
            for name in unknown
            if (meant := self._meant(name))
        ]

    def warnings(self, environ: Mapping[str, str]) -> list[str]:
        """Returns a sentence about each other variable that has no effect."""
        return [
            f"{name} has no effect. {self.removed.get(name, 'There is no such setting: remove it.')}"
            for name in self._unknown(environ)
            if name in self.removed or not self._meant(name)
        ]

    def _unknown(self, environ: Mapping[str, str]) -> Iterator[str]:
        for name, value in sorted(environ.items()):
            is_ours = name.startswith(self.prefixes) and not name.startswith(self.foreign)
            if is_ours and value and not is_injected(name, value) and name.removesuffix("_FILE") not in self.known:
                yield name

    def _meant(self, name: str) -> str:
        names = sorted(each for known in self.known for each in (known, f"{known}_FILE"))
        distance, meant = min((_distance(name, each), each) for each in names)
        return meant if distance <= _MISSPELT else ""


def _distance(one: str, other: str) -> int:
    """Returns how many letters have to be added, removed or replaced to turn one text into the other."""
    row = list(range(len(other) + 1))
    for count, letter in enumerate(one, start=1):
        before, row = row, [count]
        for place, each in enumerate(other):
            row.append(min(before[place + 1] + 1, row[place] + 1, before[place] + (letter != each)))
    return row[-1]
