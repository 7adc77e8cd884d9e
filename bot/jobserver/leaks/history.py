"""What git has of a change: its new files, and whether a text stood somewhere before. Blocks."""

import subprocess
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
