"""The text documents of a working copy: found, read and written without ever following a link out of it."""

import contextlib
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

PAGE_SUFFIXES = (".md", ".mdx", ".markdown", ".rst", ".adoc", ".asciidoc", ".html", ".htm", ".txt")
_NOT_PROSE = re.compile(
    r"(?:requirements|constraints)[^/]*\.txt|cmakelists\.txt|robots\.txt|llms[^/]*\.txt", re.IGNORECASE
)
_SKIPPED_FOLDERS = {".git", "node_modules", ".venv"}
_SIZE_LIMIT = 5_000_000


@dataclass(frozen=True)
class Documents:
    """All paths are relative to the root, with forward slashes."""

    root: Path

    def paths(self) -> list[PurePosixPath]:
        """Returns every text document that is a plain file of at most 5 MB, sorted."""
        return sorted(self._walk())

    def _walk(self) -> Iterator[PurePosixPath]:
        for folder, folders, files in os.walk(self.root, followlinks=False):
            folders[:] = [name for name in folders if name.lower() not in _SKIPPED_FOLDERS]
            for name in files:
                if is_document(name) and self._is_plain(Path(folder, name)):
                    yield PurePosixPath(Path(folder, name).relative_to(self.root).as_posix())

    @staticmethod
    def _is_plain(path: Path) -> bool:
        with contextlib.suppress(OSError):
            status = path.lstat()
            return stat.S_ISREG(status.st_mode) and status.st_size <= _SIZE_LIMIT
        return False

    def read(self, path: PurePosixPath) -> bytes | None:
        """Returns the bytes of a document, or None if it is not UTF-8 text."""
        with self._opened(path, os.O_RDONLY) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as stream:
            data = stream.read(_SIZE_LIMIT + 1)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None
        return None if "\0" in text else data

    def write(self, path: PurePosixPath, data: bytes) -> None:
        with self._opened(path, os.O_WRONLY | os.O_TRUNC) as descriptor:
            _write_all(descriptor, data)

    def create(self, path: PurePosixPath, data: bytes) -> None:
        """Writes a new file.

        Raises:
            FileExistsError: something is there already, a link included.
        """
        with self._opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
            _write_all(descriptor, data)

    @contextlib.contextmanager
    def _opened(self, path: PurePosixPath, flags: int) -> Iterator[int]:
        """Opens step by step from the root, so that no folder on the way can be a link (ELOOP or ENOTDIR then)."""
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise PermissionError("a path must stay inside the repository")
        with contextlib.ExitStack() as stack:
            descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, descriptor)
            for part in path.parts[:-1]:
                descriptor = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
                stack.callback(os.close, descriptor)
            descriptor = os.open(path.parts[-1], flags | os.O_NOFOLLOW, 0o644, dir_fd=descriptor)
            stack.callback(os.close, descriptor)
            yield descriptor


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def is_document(name: str) -> bool:
    return name.lower().endswith(PAGE_SUFFIXES) and not _NOT_PROSE.fullmatch(name)


def most_common_suffix(paths: list[PurePosixPath]) -> str:
    """Returns the ending most pages have; plain text only where there is nothing else."""
    counts = Counter(path.suffix for path in paths if path.suffix.lower() != ".txt")
    return max(counts, key=lambda suffix: (counts[suffix], suffix)) if counts else (".txt" if paths else ".md")


def default_folder(folders: set[PurePosixPath]) -> PurePosixPath:
    """Returns the folder where new pages go."""
    usual = (PurePosixPath(name) for name in ("docs", "doc", "documentation", "content"))
    return next((folder for folder in usual if folder in folders), PurePosixPath())


def folders_of(paths: list[PurePosixPath]) -> set[PurePosixPath]:
    return {parent for path in paths for parent in path.parents}


def matching(paths: list[PurePosixPath], place: str) -> list[PurePosixPath]:
    """Returns the documents a person means by a place: a path, or the name of a folder or page, in singular or plural.

    Empty if nothing is called so, and always for a place outside the repository.
    """
    wanted = PurePosixPath(place.replace("\\", "/").removeprefix("./").rstrip("/") or ".")
    if wanted.is_absolute() or ".." in wanted.parts:
        return []
    exact = [path for path in paths if path == wanted or wanted in path.parents]
    if exact or len(wanted.parts) > 1:
        return exact
    for form in _forms(slug(place)):
        folders = [path for path in paths if any(slug(parent.name) == form for parent in path.parents)]
        found = folders or [path for path in paths if form in {slug(path.name), slug(path.stem)}]
        if found:
            return found
    return []


def _forms(name: str) -> tuple[str, ...]:
    return (name, name.removesuffix("s") if name.endswith("s") else f"{name}s") if name else ()


def slug(title: str) -> str:
    """Returns a title as it stands in a file name: small letters and digits of any script, joined by hyphens."""
    return re.sub(r"[\W_]+", "-", title.casefold()).strip("-")[:60].rstrip("-")
