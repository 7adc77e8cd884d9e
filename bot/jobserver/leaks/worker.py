"""Looks through a change in a process of its own, which is ended when its time is up.

Standard input is a `Task` as JSON. Standard output gets the path that is looked at, a line of JSON each, and at last a
list of what was found; no value is in it.
"""

import json
import resource
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

from bot.jobserver.leaks.allowances import Allowances
from bot.jobserver.leaks.archives import TooMuchPackedError
from bot.jobserver.leaks.history import History
from bot.jobserver.leaks.scan import Scanner, Suspicion
from bot.runtime.secrets.masking import SecretMasker

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
