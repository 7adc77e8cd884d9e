"""The Markdown pages of a working copy, and what the deeds of a job have changed there. Blocking."""

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from bot.jobserver.documents.pages import NOT_PROSE, decoded, is_markdown
from bot.jobserver.errors import EditError

_SKIPPED_FOLDERS = {".git", "node_modules", ".venv"}
_LARGEST = 1_000_000
_MOST_STEPS = 20
_START = r"(?<![^\W_]|-)(?<![^\W_][_./'\u2019])"
_END = r"(?![^\W_]|-\w|[_./]\w|['\u2019](?!s\b)\w)"
"""Where a word that begins or ends with a letter or digit is whole: not within another word, a name or a path."""


def replaced(text: str, words: Mapping[str, str]) -> tuple[str, int]:
    """Replaces whole words in a page's prose; returns the new text, and how many were replaced."""
    wanted = "|".join(_pattern(old) for old in sorted(words, key=len, reverse=True))
    by_signs = {_plain(old): new for old, new in words.items()}
    count = 0

    def new(found: re.Match[str]) -> str:
        nonlocal count
        if found["wanted"] is None:
            return found[0]
        count += 1
        return by_signs[_plain(found["wanted"])]

    changed = re.sub(f"(?P<wanted>{wanted})|{NOT_PROSE.pattern}", new, text, flags=re.MULTILINE | re.DOTALL)
    return changed, count


def _pattern(old: str) -> str:
    """Returns a pattern for words, whichever spaces and apostrophes a page has."""
    parts = (re.escape(part).replace("'", r"['\u2019]") for part in _plain(old).split())
    inner = r"[^\S\n]{1,9}".join(parts)
    start = _START if old.strip()[0].isalnum() else ""
    return f"{start}{inner}{_END if old.strip()[-1].isalnum() else ''}"


def _plain(text: str) -> str:
    return " ".join(text.replace("\u2019", "'").split())


@dataclass
class Pages:
    """The pages below `root`, those nearest to it first; links are left out. `unread` counts what is no text."""

    root: Path
    is_stopped: Callable[[], bool] = lambda: False
    unread: int = 0
    paths: list[PurePosixPath] = field(init=False)

    def __post_init__(self) -> None:
        self.paths = sorted(self._found(), key=lambda path: (len(path.parts), path.parts))

    def _found(self) -> Iterator[PurePosixPath]:
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name.lower() not in _SKIPPED_FOLDERS]
            for path in (Path(folder, name) for name in names):
                if is_markdown(PurePosixPath(path)) and path.is_file() and not path.is_symlink():
                    yield PurePosixPath(path.relative_to(self.root))

    def texts(self) -> Iterator[tuple[PurePosixPath, str]]:
        """Yields the pages that can be read. Raises EditError if it was stopped."""
        self.unread = 0
        for path in self.paths:
            if self.is_stopped():
                raise EditError("it was stopped")
            if (text := self.text(path)) is None:
                self.unread += 1
            else:
                yield path, text

    def text(self, path: PurePosixPath) -> str | None:
        """Returns a page's text with its line ends; None if there is none, a link leads to it, it is not UTF-8, or too
        large.
        """
        file = self.root / path
        if self._is_linked(path) or not file.is_file() or file.stat().st_size > _LARGEST:
            return None
        return decoded(file.read_bytes())

    def is_free(self, path: PurePosixPath) -> bool:
        """Returns whether a page can be added here: not where something is, nor where a link leads elsewhere."""
        return not (self._is_linked(path) or (self.root / path).exists())

    def _is_linked(self, path: PurePosixPath) -> bool:
        return (self.root / path).resolve() != self.root.resolve() / path

    def write(self, texts: Mapping[PurePosixPath, str | None]) -> None:
        """Writes pages; None removes one."""
        for path, text in texts.items():
            if text is None:
                (self.root / path).unlink(missing_ok=True)
            else:
                (self.root / path).write_bytes(text.encode())

    def place_for(self, name: str) -> PurePosixPath:
        """Returns the path for a new page: in the folder nearest to the root, besides it, that has pages."""
        folders = [path.parent for path in self.paths if path.parts[1:] and not path.parts[0].startswith(".")]
        suffix = max(Counter(path.suffix for path in self.paths).items(), key=lambda each: each[1], default=(".md", 0))[
            0
        ]
        return (folders[0] if folders else PurePosixPath()) / f"{name}{suffix}"


@dataclass(frozen=True)
class Journal:
    """What each deed of a job changed, oldest first, in a file of the job's home: the texts before, and digests after.

    A deed can be undone while all of its pages are as it left them.
    """

    file: Path

    def note(self, pages: Pages, after: Mapping[PurePosixPath, str]) -> None:
        """Notes a deed that is about to be done."""
        step = {str(path): [pages.text(path), _digest(text)] for path, text in after.items()}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps([*self._steps(), step][-_MOST_STEPS:]), encoding="utf-8")

    def before_last(self, pages: Pages) -> Mapping[PurePosixPath, str | None]:
        """Returns the pages as they were before the newest deed that can be undone; empty if there is none."""
        for step in reversed(self._steps()):
            if all(_digest(pages.text(PurePosixPath(name))) == after for name, (_, after) in step.items()):
                return {PurePosixPath(name): before for name, (before, _) in step.items()}
        return {}

    def _steps(self) -> Sequence[Mapping[str, tuple[str | None, str]]]:
        try:
            steps: list[Mapping[str, tuple[str | None, str]]] = json.loads(self.file.read_bytes())
        except (FileNotFoundError, ValueError):  # none, or it was interrupted
            return []
        return steps


def _digest(text: str | None) -> str:
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()
