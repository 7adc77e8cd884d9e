"""The files of a tree in the mirror, read one by one when they are asked for."""

import errno
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO

from bot.jobserver.repository.mirror import Mirror
from bot.jobserver.repository.tree_files import tree_path

_LARGEST = 5_000_000
_TIME_LIMIT_S = 60.0
_PLAIN = "100"
"""How the modes of plain files begin."""


@dataclass(frozen=True)
class TreeSnapshot:
    """Implements `Snapshot`; its methods block, so call them in a thread. `tree` can be a commit, too."""

    mirror: Mirror
    tree: str

    def paths(self) -> tuple[PurePosixPath, ...]:
        return tuple(sorted(self._blobs, key=lambda path: path.parts))

    def read(self, path: PurePosixPath) -> bytes | None:
        blob = self._blobs.get(path)
        return self._git("cat-file", "blob", blob) if blob else None

    def read_all(self, paths: Iterable[PurePosixPath]) -> Iterator[tuple[PurePosixPath, bytes]]:
        wanted = [(path, blob) for path in paths if (blob := self._blobs.get(path))]
        with tempfile.TemporaryFile() as names:
            names.write("".join(f"{blob}\n" for _, blob in wanted).encode())
            names.seek(0)
            command = self.mirror.git.command(self.mirror.directory, ("cat-file", "--batch=%(objectsize)"), b"", {})
            with subprocess.Popen(
                command.arguments, cwd=command.directory, env=dict(command.environment),
                stdin=names, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            ) as process:  # fmt: skip
                try:
                    yield from ((path, _next_blob(process.stdout)) for path, _ in wanted)
                finally:
                    process.kill()  # where nobody wants the rest

    def write_files(self, folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="index-") as scratch:
            place = {
                "GIT_DIR": str(self.mirror.directory),
                "GIT_WORK_TREE": str(folder),
                "GIT_INDEX_FILE": str(Path(scratch, "index")),
            }
            if self._git("read-tree", "-u", "--reset", self.tree, place=place) is None:
                raise OSError(errno.EIO, "git cannot write them")

    @cached_property
    def _blobs(self) -> dict[PurePosixPath, str]:
        listed = self._git("ls-tree", "-r", "-l", "-z", "--full-tree", self.tree) or b""
        blobs = {}
        for line in listed.decode(errors="surrogateescape").split("\0"):
            fields, _, name = line.partition("\t")
            if fields.startswith(_PLAIN):
                _, _, blob, size = fields.split()
                if size.isdigit() and int(size) <= _LARGEST:  # of one that is missing, git says BAD
                    blobs[tree_path(name)] = blob
        return blobs

    def _git(self, *arguments: str, place: Mapping[str, str] | None = None) -> bytes | None:
        directory = Path(place["GIT_WORK_TREE"]) if place else self.mirror.directory
        command = self.mirror.git.command(directory, arguments, b"", place or {})
        done = subprocess.run(
            command.arguments, cwd=command.directory, env=dict(command.environment),
            stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_TIME_LIMIT_S,
        )  # fmt: skip
        return done.stdout if done.returncode == 0 else None


def _next_blob(output: IO[bytes] | None) -> bytes:
    """Reads of `git cat-file --batch`: a line with the size, the contents, and a line's end."""
    size = int((output and output.readline()) or -1)
    data = output.read(size + 1) if output and size >= 0 else b""
    if len(data) <= size or size < 0:
        raise OSError(errno.EIO, "git ended early")
    return data[:-1]
