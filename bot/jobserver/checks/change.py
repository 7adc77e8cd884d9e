"""The change to check: its pages before and after, parsed on demand."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from pathlib import PurePosixPath

from bot.jobserver.checks.site_addresses import SiteAddresses
from bot.jobserver.documents.page import ParsedPage
from bot.jobserver.documents.parsing import decoded, is_page, parse_page
from bot.jobserver.repository.snapshot import Snapshot


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


class CheckedChange:
    """The files before and after a change. Its methods read and parse, so call them in a thread."""

    def __init__(
        self,
        before: Snapshot,
        after: Snapshot,
        changed: Collection[PurePosixPath],
        *,
        time_is_up: Callable[[], bool] = lambda: False,
    ) -> None:
        self.before = before
        self.after = after
        self._changed = changed
        self._time_is_up = time_is_up
        self._pages: dict[PurePosixPath, ParsedPage | None] = {}
        self._pages_before: dict[PurePosixPath, ParsedPage | None] = {}

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
        return tuple(sorted(path for path in self._changed if is_page(path) and path in self.paths))

    @cached_property
    def removed(self) -> frozenset[PurePosixPath]:
        return self.paths_before - self.paths

    @cached_property
    def addresses(self) -> SiteAddresses:
        """The addresses that the site serves besides its files, after the change."""
        return SiteAddresses.of(self.after)

    def page(self, path: PurePosixPath) -> ParsedPage | None:
        """Returns a page after the change; None if it is not a page, not text, or too large.

        Raises:
            TimeoutError: the time limit of all checks has passed.
        """
        return self._parsed(path, self.after, self._pages)

    def page_before(self, path: PurePosixPath) -> ParsedPage | None:
        """Returns the page before the change, and otherwise as `page` does."""
        return self._parsed(path, self.before, self._pages_before) if path in self.paths_before else None

    def texts(self, paths: Sequence[PurePosixPath]) -> Iterator[tuple[PurePosixPath, str]]:
        """Yields the text of each of these files, after the change, that is a text.

        Raises:
            TimeoutError: the time limit of all checks has passed.
        """
        for path, data in self.after.read_all(paths):
            self._require_time()
            if (text := decoded(data)) is not None:
                yield path, text

    def new_lines(self, path: PurePosixPath) -> frozenset[int]:
        return new_lines(text_of(self.before, path), text_of(self.after, path) or "")

    def _parsed(
        self, path: PurePosixPath, snapshot: Snapshot, known: dict[PurePosixPath, ParsedPage | None]
    ) -> ParsedPage | None:
        self._require_time()
        if path not in known:
            text = text_of(snapshot, path) if is_page(path) else None
            known[path] = None if text is None else parse_page(path, text)
        return known[path]

    def _require_time(self) -> None:
        if self._time_is_up():
            raise TimeoutError


def text_of(snapshot: Snapshot, path: PurePosixPath) -> str | None:
    """Returns a file's text; None if it is missing, not UTF-8, or too large."""
    data = snapshot.read(path)
    return None if data is None else decoded(data)
