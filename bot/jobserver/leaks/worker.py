"""Scans a change for secrets, as a process that the server ends when its time is up.

Standard input is a `Task` as JSON. Standard output gets the path that is looked at, a line of JSON each, and at last a
list of what was found; no value is in it.
"""

import json
import resource
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypedDict

from bot.jobserver.leaks.archives import TooMuchPackedError
from bot.jobserver.leaks.scan import Allowances, Scanner, Suspicion
from bot.jobserver.repository.git_reader import GitReader, GitTask
from bot.runtime.secrets.masking import SecretMasker

_LINK = "120000"
_FILE = "100"
_ADDED = "A"
TOO_MUCH_PACKED = 3
"""Its exit code where the file that was named last packs more than is looked at."""
_MEMORY = 2_000_000_000
_MOST = 20


@dataclass(frozen=True)
class NewFile:
    """A file, or a link, as it is after the change."""

    path: str
    blob: str


@dataclass(frozen=True)
class New:
    """The names that a change added, and the files that are new or changed, without those that only moved."""

    names: Sequence[str]
    files: Sequence[NewFile]


@dataclass(frozen=True)
class ChangeReader:
    """What git has of a change: its new files, and whether a text stood somewhere before. Blocks."""

    git: GitReader

    def change(self, before: str, after: str) -> New:
        listed = self.git.output("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", before, after, "--")
        fields = listed.decode(errors="surrogateescape").split("\0")
        changes = [(facts.lstrip(":").split(" "), path) for facts, path in zip(fields[::2], fields[1::2], strict=False)]
        known = {facts[2] for facts, _ in changes}
        files = [
            NewFile(path, facts[3])
            for facts, path in changes
            if (facts[1].startswith(_FILE) or facts[1] == _LINK) and facts[3] not in known
        ]
        return New([path for facts, path in changes if facts[4] == _ADDED], files)

    def contents(self, files: Sequence[NewFile]) -> Iterator[tuple[NewFile, bytes]]:
        """Yields the files with their bytes, one after the other."""
        with self.git.blobs() as read:
            yield from ((file, read(file.blob)) for file in files)

    def known_lines(self, lines: Collection[str], trees: Sequence[str]) -> set[str]:
        """Returns which of these lines of text stand in one of the trees."""
        if not lines:
            return set()
        with tempfile.NamedTemporaryFile() as patterns:
            patterns.write("".join(f"{line}\n" for line in lines).encode(errors="surrogateescape"))
            patterns.flush()
            found = self.git.output(
                "grep", "-a", "-h", "-o", "--no-color", "-F", "-f", patterns.name, *dict.fromkeys(trees), "--",
                accepted=(0, 1),
            )  # fmt: skip
        return set(found.decode(errors="surrogateescape").splitlines())


class Task(TypedDict):
    """What is to be looked through, and with which git."""

    git: GitTask
    start: str
    base: str
    commit: str
    known: Sequence[str]
    allowed: Sequence[str]


class Found(TypedDict):
    """What a `Leak` is made of."""

    path: str
    what: str
    rule: str


def main() -> None:
    try:
        _look()
    except TooMuchPackedError:
        sys.exit(TOO_MUCH_PACKED)


def _look() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    task: Task = json.load(sys.stdin)
    history = ChangeReader(GitReader.of_task(task["git"]))
    known = tuple(task["known"])
    suspicions = list(_suspicions(task, history, Scanner(known, Allowances(tuple(task["allowed"])))))
    lines = {line for one in suspicions for line in one.lines}
    before = history.known_lines(lines, (task["start"], task["base"]))
    new = [one for one in suspicions if not before.issuperset(one.lines)]
    _tell([_found(one, SecretMasker(known)) for one in new[:_MOST]])


def _suspicions(task: Task, history: ChangeReader, scanner: Scanner) -> Iterator[Suspicion]:
    new = history.change(task["start"], task["commit"])
    for name in new.names:
        yield from scanner.suspicions(name, name.encode(errors="surrogateescape"))
    for file, data in history.contents(new.files):
        _tell(file.path.encode(errors="replace").decode())
        yield from scanner.suspicions(file.path, data)


def _found(suspicion: Suspicion, masker: SecretMasker) -> Found:
    """A name can hold the secret itself."""
    path = masker.mask(suspicion.path.encode(errors="replace").decode()).text
    return Found(path=path, what=str(suspicion.kind), rule=suspicion.rule)


def _tell(value: str | list[Found]) -> None:
    sys.stdout.write(f"{json.dumps(value)}\n")
    sys.stdout.flush()
