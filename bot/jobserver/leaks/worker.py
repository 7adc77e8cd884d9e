"""Looks through a change in a process of its own, which is ended when its time is up.

Standard input is a `Task` as JSON. Standard output gets the path that is looked at, a line of JSON each, and at last a
list of what was found; no value is in it.
"""

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from bot.jobserver.leaks.archives import TooMuchPackedError
from bot.jobserver.leaks.scan import Allowances, Scanner, Suspicion
from bot.runtime.secrets.masking import SecretMasker

# What git has of a change: its new files, and whether a text stood somewhere before. Blocks.

_LINK = "120000"
_FILE = "100"
_ADDED = "A"


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
class History:
    """git in the mirror. `command` is git with its options."""

    command: Sequence[str]
    directory: Path
    environment: Mapping[str, str]

    def change(self, before: str, after: str) -> New:
        listed = self._run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", before, after, "--")
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
        with tempfile.TemporaryFile() as names:
            names.write("".join(f"{file.blob}\n" for file in files).encode())
            names.seek(0)
            with self._start("cat-file", "--batch", stdin=names.fileno()) as process:
                if process.stdout is None:
                    raise ChildProcessError("git cat-file has no output")
                for file in files:
                    *_, size = process.stdout.readline().split()
                    data = process.stdout.read(int(size))
                    process.stdout.read(1)
                    yield file, data

    def known_lines(self, lines: Collection[str], trees: Sequence[str]) -> set[str]:
        """Returns which of these lines of text stand in one of the trees."""
        if not lines:
            return set()
        with tempfile.NamedTemporaryFile() as patterns:
            patterns.write("".join(f"{line}\n" for line in lines).encode(errors="surrogateescape"))
            patterns.flush()
            found = self._run(
                "grep", "-a", "-h", "-o", "--no-color", "-F", "-f", patterns.name, *dict.fromkeys(trees), "--",
                is_fine=(0, 1),
            )  # fmt: skip
        return set(found.decode(errors="surrogateescape").splitlines())

    def _run(self, *arguments: str, is_fine: Collection[int] = (0,)) -> bytes:
        with self._start(*arguments, stdin=subprocess.DEVNULL) as process:
            output, _ = process.communicate()
        if process.returncode not in is_fine:
            raise ChildProcessError(f"git {arguments[0]} ended with exit code {process.returncode}")
        return output

    def _start(self, *arguments: str, stdin: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self.command, *arguments], cwd=self.directory, env=dict(self.environment), stdin=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip


TOO_MUCH_PACKED = 3
"""Its exit code where the file that was named last packs more than is looked at."""
_MEMORY = 2_000_000_000
_MOST = 20


class Task(TypedDict):
    """What is to be looked through, and with which git."""

    command: Sequence[str]
    directory: str
    environment: dict[str, str]
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
    history = History(task["command"], Path(task["directory"]), task["environment"])
    known = tuple(task["known"])
    suspicions = list(_suspicions(task, history, Scanner(known, Allowances(tuple(task["allowed"])))))
    lines = {line for one in suspicions for line in one.lines}
    before = history.known_lines(lines, (task["start"], task["base"]))
    new = [one for one in suspicions if not before.issuperset(one.lines)]
    _tell([_found(one, SecretMasker(known)) for one in new[:_MOST]])


def _suspicions(task: Task, history: History, scanner: Scanner) -> Iterator[Suspicion]:
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
