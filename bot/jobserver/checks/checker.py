"""What a repository's own checker is: a program, the settings it is found by, and how its findings are read."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from bot.jobserver.checks.change import CheckedChange, text_of
from bot.jobserver.checks.program import CheckCouldNotRunError, Finished

_NONE = re.compile(r"(?!)")
_LAST_CHARACTERS = 250


@dataclass(frozen=True)
class LineFault:
    """A fault in a line, counted from 1."""

    path: PurePosixPath
    line: int
    words: str
    missing: PurePosixPath | None = None
    """The file that it is not there, if that is the fault."""


@dataclass(frozen=True)
class SharedSettings:
    """A file that holds settings of many programs; `mark` is found in it where it holds those of this one."""

    name: str
    mark: re.Pattern[str]


@dataclass(frozen=True)
class Checker:
    """A program that a repository has settings for.

    It is found by files at the root, whose paths `settings` matches, or by files there or in a folder above a changed
    page, whose names `beside` matches. `command` makes its arguments of pages' paths, and `read` its output into
    findings; that raises `CheckCouldNotRunError`. `endings` are those of the pages that it looks at; none: of all.
    """

    name: str
    program: str
    command: Callable[[Sequence[PurePosixPath]], tuple[str, ...]]
    read: Callable[[Finished], Iterable[LineFault]]
    settings: re.Pattern[str] = _NONE
    beside: re.Pattern[str] = _NONE
    shared: Collection[SharedSettings] = ()
    endings: frozenset[str] = frozenset()

    def pages(self, change: CheckedChange) -> list[PurePosixPath]:
        """Returns the changed pages that the base's settings have it look at."""
        pages = [page for page in change.changed_pages if not self.endings or page.suffix.lower() in self.endings]
        if not pages:
            return []
        folders = {path.parent for path in change.paths_before if self.beside.fullmatch(path.name)}
        if PurePosixPath() in folders or self._is_set_up_at_the_root(change):
            return pages
        return [page for page in pages if not folders.isdisjoint(page.parents)]

    def _is_set_up_at_the_root(self, change: CheckedChange) -> bool:
        if any(self.settings.fullmatch(str(path)) for path in change.paths_before):
            return True
        texts = ((file, text_of(change.before, PurePosixPath(file.name))) for file in self.shared)
        return any(text is not None and file.mark.search(text) for file, text in texts)


def could_not_run(done: Finished) -> CheckCouldNotRunError:
    """Returns the error for a program that failed, with its last words."""
    words = " ".join(done.output.split())[-_LAST_CHARACTERS:]
    return CheckCouldNotRunError(f"it ended with exit code {done.exit_code}{f': {words}' if words else ''}")
