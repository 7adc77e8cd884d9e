"""Files of a repository, held in memory."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True)
class FakeSnapshot:
    """Implements `Snapshot`."""

    files: Mapping[str, str]

    def paths(self) -> tuple[PurePosixPath, ...]:
        return tuple(sorted(map(PurePosixPath, self.files)))

    def may_hold(self, path: PurePosixPath) -> bool:
        return any(path in {file, *file.parents} for file in map(PurePosixPath, self.files))

    def read(self, path: PurePosixPath) -> bytes | None:
        text = self.files.get(str(path))
        return None if text is None else text.encode()

    def read_all(self, paths: Iterable[PurePosixPath]) -> Iterator[tuple[PurePosixPath, bytes]]:
        yield from ((path, data) for path in paths if (data := self.read(path)) is not None)

    def write_files(self, folder: Path) -> None:
        for name, text in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
