"""Finds new pages without a menu entry, and menu entries that the change broke."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from bot.jobserver.checks.change import CheckedChange, text_of
from bot.jobserver.documents.navigation import NAVIGATION_FILES, Navigation, find_navigation, read_navigation
from bot.jobserver.repository.snapshot import Snapshot

NAME = "navigation"
_PAGES = (".md", ".mdx")


def navigation_problems(change: CheckedChange) -> Iterator[str]:
    """Yields files that became unreadable, entries for removed pages, and new pages without an entry."""
    files = sorted(path for path in change.paths if path.name in NAVIGATION_FILES)
    for file in files:
        yield from _broken_entries(change, file)
    for page in change.changed_pages:
        if page not in change.paths_before and page.suffix in _PAGES and page.name not in NAVIGATION_FILES:
            yield from _missing_entry(change, page)


def _broken_entries(change: CheckedChange, file: PurePosixPath) -> Iterator[str]:
    try:
        navigation = _read(change.after, file)
    except ValueError as error:
        if _was_readable(change, file):
            yield f"{file}: it cannot be read any more: {error}"
        return
    if navigation is None:
        return
    for target in navigation.targets():
        if (gone := next((path for path in _names(target) if path in change.removed), None)) is not None:
            yield f"{file}: it has an entry for `{gone}`, which is gone"


def _missing_entry(change: CheckedChange, page: PurePosixPath) -> Iterator[str]:
    try:
        navigation = find_navigation(page, change.paths, lambda path: text_of(change.after, path))
    except ValueError:
        return  # reported as a problem of that file
    if navigation and not navigation.lists(page) and _lists_neighbours(change, navigation, page):
        yield f"{page}: {navigation.path} has no entry for it, so no menu leads there"


def _lists_neighbours(change: CheckedChange, navigation: Navigation, page: PurePosixPath) -> bool:
    """Tells whether pages beside this one are listed. A page in a new folder is always expected to be."""
    had_pages = any(path.parent == page.parent and path.suffix in _PAGES for path in change.paths_before)
    return not had_pages or any(target.parent == page.parent for target in navigation.targets())


def _was_readable(change: CheckedChange, file: PurePosixPath) -> bool:
    try:
        return _read(change.before, file) is not None
    except ValueError:
        return False


def _read(snapshot: Snapshot, file: PurePosixPath) -> Navigation | None:
    text = text_of(snapshot, file)
    return None if text is None else read_navigation(file, text)


def _names(target: PurePosixPath) -> Iterator[PurePosixPath]:
    """Yields the files that an entry can mean: Mintlify's have no file ending."""
    yield target
    yield from (target.with_name(f"{target.name}{suffix}") for suffix in _PAGES)
