"""The change to check: its files before and after."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from bot.jobserver.documents import decoded, is_page
from bot.jobserver.repository.listings import Snapshot


def new_lines(before: str | None, after: str) -> frozenset[int]:
    """Returns the numbers, from 1, of the lines that are not in the text before. Takes linear time."""
    known = Counter((before or "").splitlines())
    found = set()
    for number, line in enumerate(after.splitlines(), start=1):
        if known[line]:
            known[line] -= 1
        else:
            found.add(number)
    return frozenset(found)


@dataclass
class CheckedChange:
    """The files before and after a change. Its methods read, so call them in a thread."""

    before: Snapshot
    after: Snapshot
    changed: Collection[PurePosixPath]
    time_is_up: Callable[[], bool] = lambda: False

    @cached_property
    def paths_before(self) -> frozenset[PurePosixPath]:
        return frozenset(self.before.paths())

    @cached_property
    def paths(self) -> frozenset[PurePosixPath]:
        """All files after the change."""
        return frozenset(self.after.paths())

    @cached_property
    def changed_pages(self) -> tuple[PurePosixPath, ...]:
        """The pages that are new or changed, sorted."""
        return tuple(sorted(path for path in self.changed if is_page(path) and path in self.paths))

    @cached_property
    def removed(self) -> frozenset[PurePosixPath]:
        return self.paths_before - self.paths

    def texts(self, snapshot: Snapshot, paths: Iterable[PurePosixPath]) -> Iterator[tuple[PurePosixPath, str]]:
        """Yields the text of each of these files that a snapshot has as a text.

        Raises:
            TimeoutError: the time limit of the check has passed.
        """
        for path, data in snapshot.read_all(paths):
            if self.time_is_up():
                raise TimeoutError
            if (text := decoded(data)) is not None:
                yield path, text

    def new_lines(self, path: PurePosixPath) -> frozenset[int]:
        return new_lines(text_of(self.before, path), text_of(self.after, path) or "")


def text_of(snapshot: Snapshot, path: PurePosixPath) -> str | None:
    """Returns a file's text; None if it is missing, not UTF-8, or too large."""
    data = snapshot.read(path)
    return None if data is None else decoded(data)
