"""Reads navigation files, and adds an entry beside a neighbour without changing anything else.

Supports Mintlify's `docs.json` and `mint.json`, `mkdocs.yml`, docsify's `_sidebar.md`, and `SUMMARY.md` of GitBook and
mdBook.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from posixpath import normpath, relpath
from urllib.parse import unquote

from bot.jobserver.documents.navigation_entries import (
    Entry,
    NewEntry,
    insert,
    json_entries,
    list_entries,
    mkdocs_entries,
)
from bot.jobserver.documents.page import is_record

MAX_NAVIGATION = 300_000
"""The size limit of a file, in characters or bytes."""
_MINTLIFY, _MKDOCS = ("docs.json", "mint.json"), ("mkdocs.yml", "mkdocs.yaml")
_LISTS = ("_sidebar.md", "SUMMARY.md")
NAVIGATION_FILES = (*_MINTLIFY, *_MKDOCS, *_LISTS)
_PAGE_ENDINGS = (".mdx", ".md")


@dataclass(frozen=True)
class Navigation:
    """A navigation file. `root` is the folder that its entries are relative to."""

    path: PurePosixPath
    root: PurePosixPath
    text: str
    entries: tuple[Entry, ...]

    def lists(self, page: PurePosixPath) -> bool:
        """Tells whether a page has an entry."""
        return any(_without_ending(target) == _without_ending(page) for target in self.targets())

    def targets(self) -> list[PurePosixPath]:
        """Returns the entries' paths from the repository's root; Mintlify's have no file ending."""
        return [target for entry in self.entries if (target := self.target(entry)) is not None]

    def target(self, entry: Entry) -> PurePosixPath | None:
        """Returns the path that an entry leads to, or None if that is not in the repository."""
        written = unquote(entry.target.partition("#")[0].partition("?")[0])
        if not written or "://" in written or written.startswith("//"):
            return None
        path = PurePosixPath(normpath(str(self.root / entry.folder / written.lstrip("/"))))
        return None if ".." in path.parts else path

    def covers(self, page: PurePosixPath) -> bool:
        """Tells whether a page is in the folder whose pages this file lists."""
        return self.root in page.parents


def read_navigation(path: PurePosixPath, text: str) -> Navigation | None:
    """Reads a navigation file.

    Returns None if its name is unknown, it lists nothing (MkDocs then lists all pages itself), or it is too large.

    Raises:
        ValueError: the file cannot be read; the message says why.
    """
    if len(text) > MAX_NAVIGATION or path.name not in NAVIGATION_FILES:
        return None
    root = path.parent
    if path.name in _MINTLIFY:
        entries = json_entries(text)
    elif path.name in _MKDOCS:
        folder, entries = mkdocs_entries(text)
        root = PurePosixPath(normpath(str(root / folder)))
    else:
        entries = list_entries(text)
    return Navigation(path, root, text, tuple(entries)) if entries else None


def find_navigation(
    page: PurePosixPath, paths: Iterable[PurePosixPath], read: Callable[[PurePosixPath], str | None]
) -> Navigation | None:
    """Returns the nearest navigation file above a page that lists pages of its folder; None if there is none.

    Raises:
        ValueError: the nearest one cannot be read; the message says why.
    """
    candidates = [path for path in paths if path.name in NAVIGATION_FILES and path.parent in page.parents]
    for path in sorted(candidates, key=lambda path: (-len(path.parts), NAVIGATION_FILES.index(path.name))):
        text = read(path)
        navigation = read_navigation(path, text) if text is not None else None
        if navigation is not None and navigation.covers(page):
            return navigation
    return None


def with_entry(navigation: Navigation, page: PurePosixPath, title: str) -> str | None:
    """Returns the file with an entry for a new page after its last neighbour; None if it has no neighbour."""
    neighbour = _neighbour(navigation, page)
    if neighbour is None:
        return None
    written = relpath(page, navigation.root / neighbour.folder)
    if not neighbour.target.lower().endswith(_PAGE_ENDINGS):
        written = str(_without_ending(PurePosixPath(written)))
    prefix = next((sign for sign in ("/", "./") if neighbour.target.startswith(sign)), "")
    return insert(navigation.text, neighbour, NewEntry(title, prefix + written))


def _neighbour(navigation: Navigation, page: PurePosixPath) -> Entry | None:
    """Returns the last entry in the page's folder or the nearest one above; changelogs only for changelogs."""
    targets = ((navigation.target(entry), entry) for entry in navigation.entries)
    found = [(target.parent, entry) for target, entry in targets if target and is_record(target) <= is_record(page)]
    for folder in page.parents:
        beside = [entry for parent, entry in found if parent == folder]
        if beside:
            return beside[-1]
    below = [entry for parent, entry in found if page.parent in parent.parents]
    return below[-1] if below else None


def _without_ending(path: PurePosixPath) -> PurePosixPath:
    return path.with_suffix("") if path.suffix.lower() in _PAGE_ENDINGS else path
