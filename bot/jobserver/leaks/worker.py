"""The scan process, which the server kills at its time limit.

Standard input is a `Task` as JSON. The process writes lines of JSON: the path of each file before it is scanned, and
finally the list of findings, without the secrets themselves.
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
"""The exit code if the archive that was named last exceeds the limits."""
_MEMORY = 2_000_000_000
_MOST = 20


@dataclass(frozen=True)
class NewFile:
    """A file or link after the change."""

    path: str
    blob: str


@dataclass(frozen=True)
class NewContent:
    """The names that a change added, and the new and changed files, without those that were only moved."""

    names: Sequence[str]
    files: Sequence[NewFile]


@dataclass(frozen=True)
class ChangeReader:
    """Reads the new files of a change, and searches earlier versions. Blocks."""

    git: GitReader

    def change(self, before: str, after: str) -> NewContent:
        listed = self.git.output("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", before, after, "--")
        fields = listed.decode(errors="surrogateescape").split("\0")
        changes = [(facts.lstrip(":").split(" "), path) for facts, path in zip(fields[::2], fields[1::2], strict=False)]
        known = {facts[2] for facts, _ in changes}
        files = [
            NewFile(path, facts[3])
            for facts, path in changes
            if (facts[1].startswith(_FILE) or facts[1] == _LINK) and facts[3] not in known
        ]
        return NewContent([path for facts, path in changes if facts[4] == _ADDED], files)

    def contents(self, files: Sequence[NewFile]) -> Iterator[tuple[NewFile, bytes]]:
        """Yields the files with their contents."""
        with self.git.blobs() as read:
            yield from ((file, read(file.blob)) for file in files)

    def known_lines(self, lines: Collection[str], trees: Sequence[str]) -> set[str]:
        """Returns which of these lines are in one of the trees."""
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
    """What to scan, and how to run git."""

    git: GitTask
    start: str
    base: str
    commit: str
    known: Sequence[str]
    allowed: Sequence[str]


class Found(TypedDict):
    """The fields of a `Leak`."""

    path: str
    what: str
    rule: str


def main() -> None:
    try:
        _scan()
    except TooMuchPackedError:
        sys.exit(TOO_MUCH_PACKED)


def _scan() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    task: Task = json.load(sys.stdin)
    history = ChangeReader(GitReader.of_task(task["git"]))
    known = tuple(task["known"])
    suspicions = list(_suspicions(task, history, Scanner(known, Allowances(tuple(task["allowed"])))))
    lines = {line for one in suspicions for line in one.lines}
    before = history.known_lines(lines, (task["start"], task["base"]))
    new = [one for one in suspicions if not before.issuperset(one.lines)]
    _write([_found(one, SecretMasker(known)) for one in new[:_MOST]])


def _suspicions(task: Task, history: ChangeReader, scanner: Scanner) -> Iterator[Suspicion]:
    new = history.change(task["start"], task["commit"])
    for name in new.names:
        yield from scanner.suspicions(name, name.encode(errors="surrogateescape"))
    for file, data in history.contents(new.files):
        _write(file.path.encode(errors="replace").decode())
        yield from scanner.suspicions(file.path, data)


def _found(suspicion: Suspicion, masker: SecretMasker) -> Found:
    """Masks the path, which can contain the secret itself."""
    path = masker.mask(suspicion.path.encode(errors="replace").decode()).text
    return Found(path=path, what=str(suspicion.kind), rule=suspicion.rule)


def _write(value: str | list[Found]) -> None:
    sys.stdout.write(f"{json.dumps(value)}\n")
    sys.stdout.flush()
