"""Finds the secrets that a change would add to the repository, within a time limit."""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from bot.jobserver.errors import LeakScanError
from bot.jobserver.leaks.own_secrets import OwnSecrets, layers, text_in
from bot.jobserver.repository.allowed_paths import matches
from bot.jobserver.repository.git import GitReader, printable
from bot.jobserver.repository.git_repository import StartingPoint
from bot.jobserver.repository.mirror import Mirror
from bot.runtime.secrets import SecretKind
from bot.runtime.secrets.masking import find

TIME_LIMIT_S = 60.0
PIECE, _MARGIN = 100_000, 5_000
"""Characters that are searched at once, and how far around them: the worst texts take 20 s per megabyte."""
_MOST_LINES = 16
"""How many lines of a secret are searched for in earlier versions; a private key has more, but all are random."""
_MOST = 20
_LINK, _FILE = "120000", "100"


@dataclass(frozen=True)
class Suspicion:
    """A possible secret in a file, or in its name. It is new if some of its `lines` are not in earlier versions.

    `rule` is empty for a secret of this server's own, which cannot be allowed.
    """

    path: str
    kind: SecretKind
    rule: str = ""
    lines: tuple[str, ...] = ()


FindLeaks = Callable[[StartingPoint, str], Awaitable[list[Suspicion]]]
"""Finds secrets in a commit: `ChangeScan.leaks`."""


@dataclass
class Scanner:
    """Finds what is known, in all its forms, and whatever the rules find.

    `allowed` are patterns of paths, each alone or with a colon and the one rule that does not apply there. `ends` is
    when to give up, in monotonic seconds.
    """

    known: OwnSecrets
    allowed: Sequence[str] = ()
    ends: float = float("inf")

    def suspicions(self, path: str, data: bytes) -> Iterator[Suspicion]:
        """Yields each secret in a file, or in a name as `data`. Raises LeakScanError when the time is over."""
        text = text_in(data)
        self._check_time(path)
        for value in self.known.revealed(text):
            yield Suspicion(path, SecretKind.OWN, "", _lines(value))
        entries = (entry.partition(":") for entry in self.allowed)
        rules = [rule for pattern, _, rule in entries if matches(pattern, path)]
        if "" in rules:
            return
        *_, deepest = layers(text)
        for each in dict.fromkeys((text, deepest)):
            yield from (one for one in self._by_rules(path, each) if one.rule not in rules)

    def _by_rules(self, path: str, text: str) -> Iterator[Suspicion]:
        for at in range(0, len(text), PIECE):
            self._check_time(path)
            begin = max(at - _MARGIN, 0)
            piece = text[begin : at + PIECE + _MARGIN]
            for one in find(piece):
                if at <= begin + one.start < at + PIECE:
                    yield Suspicion(path, one.kind, one.rule, _lines(piece[one.start : one.end]))

    def _check_time(self, path: str) -> None:
        if time.monotonic() > self.ends:
            raise LeakScanError(f"took too long at `{printable(self.known.all(path))}`")


def _lines(value: str) -> tuple[str, ...]:
    return tuple(line for line in map(str.strip, value.splitlines()) if line)[:_MOST_LINES]


def new_secrets(git: GitReader, start: StartingPoint, commit: str, scanner: Scanner) -> list[Suspicion]:
    """Returns the secrets in a change, each once, that neither its files nor the trees contained before. Blocks.

    Raises:
        LeakScanError: the time is over.
        OSError: git failed.
    """
    before, after = _sides(git, start.tree, commit)
    found = _suspicions(git, after, scanner)
    lines = _known_lines(git, {line for one in found for line in one.lines}, (start.tree, start.base))
    found = [one for one in found if not lines.issuperset(one.lines)]
    # What was encoded before is not found by its lines.
    earlier = {one.lines for one in _suspicions(git, before, scanner)} if found else set()
    return [one for one in found if one.lines not in earlier]


Side = list[tuple[str, str | None]]
"""Paths, each with the blob of its contents; None for its name only."""


def _sides(git: GitReader, start: str, commit: str) -> tuple[Side, Side]:
    """Returns the files and links that differ, before and after, without what was only moved."""
    options = ("-r", "-z", "--raw", "--no-renames", "--no-ext-diff")
    listed = git.output("diff-tree", *options, start, commit, "--").decode(errors="surrogateescape")
    fields = iter(listed.split("\0")[:-1])
    sides: tuple[Side, Side] = ([], [])
    for facts, path in zip(fields, fields, strict=True):
        *modes_and_blobs, status = facts.lstrip(":").split(" ")
        for side, mode, blob in zip(sides, modes_and_blobs[:2], modes_and_blobs[2:], strict=True):
            if mode.startswith(_FILE) or mode == _LINK:
                side.extend([(path, blob)] if status == "M" else [(path, None), (path, blob)])
    moved = {blob for _, blob in sides[0] if blob}.intersection(blob for _, blob in sides[1])
    before, after = ([each for each in side if each[1] not in moved] for side in sides)
    return before, after


def _suspicions(git: GitReader, files: Side, scanner: Scanner) -> list[Suspicion]:
    with git.blobs() as read:
        found = (
            one
            for path, blob in files
            for one in scanner.suspicions(path, read(blob) if blob else path.encode(errors="surrogateescape"))
        )
        return list(dict.fromkeys(found))


def _known_lines(git: GitReader, lines: Collection[str], trees: Sequence[str]) -> set[str]:
    """Returns which of these lines are in one of the trees."""
    if not lines:
        return set()
    with tempfile.NamedTemporaryFile() as patterns:
        patterns.write("".join(f"{line}\n" for line in lines).encode(errors="surrogateescape"))
        patterns.flush()
        options = ("-a", "-h", "-o", "--no-color", "-F", "-f", patterns.name)
        found = git.output("grep", *options, *dict.fromkeys(trees), "--", accepted=(0, 1))
    return set(found.decode(errors="surrogateescape").splitlines())


@dataclass(frozen=True)
class ChangeScan:
    """Scans changes for secrets. `known` returns the server's current ones; `time_limit` is in seconds."""

    mirror: Mirror
    known: Callable[[], OwnSecrets]
    allowed: tuple[str, ...] = ()
    time_limit: float = TIME_LIMIT_S

    async def leaks(self, start: StartingPoint, commit: str) -> list[Suspicion]:
        """Returns secrets in a commit that were not in the repository before, without their lines; the first of them if
        there are many.

        Raises:
            LeakScanError: the scan failed, so the commit may contain secrets.
        """
        scanner = Scanner(self.known(), self.allowed, time.monotonic() + self.time_limit)
        try:
            found = await asyncio.to_thread(new_secrets, self.mirror.reader(), start, commit, scanner)
        except OSError as error:
            raise LeakScanError(f"failed: {error.strerror}") from error
        finally:
            scanner.ends = 0.0  # a cancelled search stops soon
        return [replace(one, path=scanner.known.all(one.path), lines=()) for one in found[:_MOST]]
