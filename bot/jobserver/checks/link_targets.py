"""Resolves links inside the repository. Site generators differ: a link is broken only if none finds its target."""

from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import PurePosixPath
from urllib.parse import unquote

from bot.jobserver.documents.languages import language_of_path
from bot.jobserver.repository.tree_files import folders_of

_PAGE_ENDINGS = (
    "",
    ".md",
    ".mdx",
    ".markdown",
    ".rst",
    ".adoc",
    ".html",
    "/index.md",
    "/index.mdx",
    "/README.md",
    "/_index.md",
    "/index.html",
)
_HTML = (".html", ".htm")


def split_target(target: str) -> tuple[str, str]:
    """Returns a link's path and its anchor, decoded; either can be empty."""
    path, _, anchor = target.partition("#")
    return unquote(path.partition("?")[0]), unquote(anchor)


class LinkTargets:
    """The files that links can lead to. Indexes are built on first use, since most changes add no link."""

    def __init__(self, paths: Collection[PurePosixPath]) -> None:
        self._all = paths

    @cached_property
    def _paths(self) -> frozenset[str]:
        return frozenset(map(str, self._all))

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset(map(str, folders_of(self._all)))

    @cached_property
    def _languages(self) -> dict[str, set[str | None]]:
        """The languages of the files that end with a path, by this path."""
        found: dict[str, set[str | None]] = {}
        for path in self._paths | self._folders:
            for ending, language in _endings_of(path):
                found.setdefault(ending.casefold(), set()).add(language)
        return found

    def find(self, page: PurePosixPath, path: str) -> PurePosixPath | None:
        """Returns the file or folder that a page's link leads to.

        For a path from the site's root, returns any match that is not in the folder of another language.
        """
        if path.startswith("/"):
            name = path.strip("/")
            return self._from_the_root(name, {None, "en", language_of_path(page)}) or self._below_language(name)
        starts = (page.parent, page.with_suffix(""), *_originals(page.parent))
        return next((found for start in starts if (found := self._file(start, path))), None)

    def _file(self, start: PurePosixPath, path: str) -> PurePosixPath | None:
        joined = _normalized(start, path)
        if joined is None:
            return None
        if joined in self._folders:
            return PurePosixPath(joined)
        return next((PurePosixPath(name) for name in _names(joined) if name in self._paths), None)

    def _from_the_root(self, path: str, languages: set[str | None]) -> PurePosixPath | None:
        """Tries every folder as the site's root, since only the site generator knows which one it is."""
        if not path:
            return PurePosixPath()
        names = (*_names(path), *((f"{path}x",) if path.endswith(".md") else ()))  # Mintlify's page as Markdown
        found = (name for name in names if languages & self._languages.get(name.casefold(), set()))
        return next(map(PurePosixPath, found), None)

    def _below_language(self, path: str) -> PurePosixPath | None:
        """Finds pages with a version between the language and the page: `/en/guide` may be `en/5x/guide.md`."""
        first, _, name = path.partition("/")
        language = language_of_path(PurePosixPath(first, "_"))
        return self._from_the_root(name, {language}) if language and name else None


def _originals(folder: PurePosixPath) -> Iterator[PurePosixPath]:
    """Yields possible folders of a translation's original, which site generators use for untranslated pages."""
    for number, part in enumerate(folder.parts):
        if language_of_path(PurePosixPath(part, "_")) not in {None, "en"}:
            before, after = folder.parts[:number], folder.parts[number + 1 :]
            yield from (PurePosixPath(*before, *between, *after) for between in (("en",), ()))


def _names(path: str) -> Iterator[str]:
    path = path.rstrip("/")
    yield from (f"{path}{ending}" for ending in _PAGE_ENDINGS)
    for ending in _HTML:
        if path.endswith(ending):
            yield from (f"{path.removesuffix(ending)}{other}" for other in _PAGE_ENDINGS[1:])


def _endings_of(path: str) -> Iterator[tuple[str, str | None]]:
    """Yields a path without its first 0, 1, 2, … folders, each with the language that the removed folders name."""
    parts = path.split("/")
    for start in range(min(len(parts), 8)):
        yield "/".join(parts[start:]), language_of_path(PurePosixPath(*parts[:start], "_"))


def _normalized(start: PurePosixPath, path: str) -> str | None:
    """Returns the path from the repository's root; None if it leads outside."""
    parts = list(start.parts)
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts) or "."
