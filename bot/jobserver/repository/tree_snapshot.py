"""The files of a tree in the mirror, read one by one when they are asked for."""

import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from bot.jobserver.repository.mirror import Mirror

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
        return tuple(sorted(self._blobs))

    def read(self, path: PurePosixPath) -> bytes | None:
        blob = self._blobs.get(path)
        return self._git("cat-file", "blob", blob) if blob else None

    @cached_property
    def _blobs(self) -> dict[PurePosixPath, str]:
        listed = self._git("ls-tree", "-r", "-l", "-z", "--full-tree", self.tree) or b""
        blobs = {}
        for line in listed.decode(errors="surrogateescape").split("\0"):
            fields, _, name = line.partition("\t")
            if fields.startswith(_PLAIN):
                _, _, blob, size = fields.split()
                if int(size) <= _LARGEST:
                    blobs[PurePosixPath(name)] = blob
        return blobs

    def _git(self, *arguments: str) -> bytes | None:
        command = self.mirror.git.command(self.mirror.directory, arguments, b"", {})
        done = subprocess.run(
            command.arguments, cwd=command.directory, env=dict(command.environment),
            stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_TIME_LIMIT_S,
        )  # fmt: skip
        return done.stdout if done.returncode == 0 else None
