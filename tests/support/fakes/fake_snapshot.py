"""Files of a repository, held in memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True)
class FakeSnapshot:
    """Implements `Snapshot`."""

    files: Mapping[str, str]

    def paths(self) -> tuple[PurePosixPath, ...]:
        return tuple(sorted(map(PurePosixPath, self.files)))

    def read(self, path: PurePosixPath) -> bytes | None:
        text = self.files.get(str(path))
        return None if text is None else text.encode()
