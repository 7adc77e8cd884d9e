"""Reads trees and files from git in blocking code."""

import errno
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bot.jobserver.subprocesses import Command

LARGEST_FILE = 5_000_000
_TIME_LIMIT_S = 60.0
_PLAIN = "100"
"""How the modes of plain files begin."""


@dataclass(frozen=True)
class TreeEntry:
    """A tree's entry for a path. `size` is in bytes; None for a submodule or a missing object."""

    mode: str
    kind: str
    id: str
    size: int | None

    @property
    def is_readable(self) -> bool:
        """Tells whether it is a plain file of at most 5 MB."""
        return self.mode.startswith(_PLAIN) and self.size is not None and self.size <= LARGEST_FILE


@dataclass(frozen=True)
class GitReader:
    """Runs git in a directory. All methods raise OSError if git fails."""

    command: Sequence[str]
    directory: Path
    environment: Mapping[str, str]

    @classmethod
    def of_command(cls, git: Command) -> "GitReader":
        return cls(git.arguments, git.directory, git.environment)

    def output(self, *arguments: str, accepted: Collection[int] = (0,)) -> bytes:
        """Runs git to its end, for at most 60 s; `accepted` are the exit codes that count as success."""
        try:
            done = subprocess.run(
                [*self.command, *arguments], cwd=self.directory, env=dict(self.environment), check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_TIME_LIMIT_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise TimeoutError(errno.ETIMEDOUT, f"git {arguments[0]} took too long") from None
        if done.returncode not in accepted:
            raise OSError(errno.EIO, f"git {arguments[0]} ended with exit code {done.returncode}")
        return done.stdout

    def entries(self, tree: str) -> dict[PurePosixPath, TreeEntry]:
        """Returns all entries of a tree, or of a commit's tree, except folders."""
        listed = self.output("ls-tree", "-r", "-l", "-z", "--full-tree", tree).decode(errors="surrogateescape")
        found = {}
        for line in filter(None, listed.split("\0")):
            facts, _, name = line.partition("\t")
            mode, kind, blob, size = facts.split()
            found[PurePosixPath(name)] = TreeEntry(mode, kind, blob, int(size) if size.isdigit() else None)
        return found

    @contextmanager
    def blobs(self) -> Iterator[Callable[[str], bytes]]:
        """Starts one process for many blobs; provides a function that returns the contents of a blob by its id."""
        with subprocess.Popen(
            [*self.command, "cat-file", "--batch=%(objectsize)"], cwd=self.directory, env=dict(self.environment),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            yield lambda blob: _read_blob(process, blob)


def _read_blob(process: subprocess.Popen[bytes], blob: str) -> bytes:
    """Asks `git cat-file --batch`, which answers with a line that has the size, the contents, and a line feed."""
    if process.stdin is None or process.stdout is None:
        raise OSError(errno.EIO, "git cannot be asked")
    process.stdin.write(f"{blob}\n".encode())
    process.stdin.flush()
    size = process.stdout.readline().strip()
    if not size.isdigit():
        raise OSError(errno.EIO, "git cannot read a file")
    data = process.stdout.read(int(size) + 1)
    if len(data) <= int(size):
        raise OSError(errno.EIO, "git ended early")
    return data[:-1]
