"""Where a link inside the repository may lead: site generators differ, so it is broken only if none finds anything."""

from collections.abc import Collection, Iterator
from pathlib import PurePosixPath
from urllib.parse import unquote

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
    "/index.html",
)
_HTML = (".html", ".htm")


def split_target(target: str) -> tuple[str, str]:
    """Returns a link's path and its anchor, decoded; either can be empty."""
    path, _, anchor = target.partition("#")
    return unquote(path.partition("?")[0]), unquote(anchor)


class LinkTargets:
    """The files that links can lead to."""

    def __init__(self, paths: Collection[PurePosixPath]) -> None:
        self._paths = frozenset(map(str, paths))
        self._folders = frozenset(str(parent) for path in paths for parent in path.parents)
        self._endings = {ending for path in self._paths for ending in _endings_of(path)}

    def find(self, page: PurePosixPath, path: str) -> PurePosixPath | None:
        """Returns the file or folder that a page's link leads to; for a path from the site's root, some match of it."""
        if path.startswith("/"):
            return self._from_the_root(path.strip("/"))
        return next(
            (found for start in (page.parent, page.with_suffix("")) if (found := self._file(start, path))), None
        )

    def _file(self, start: PurePosixPath, path: str) -> PurePosixPath | None:
        joined = _normalized(start, path)
        if joined is None:
            return None
        if joined in self._folders:
            return PurePosixPath(joined)
        return next((PurePosixPath(name) for name in _names(joined) if name in self._paths), None)

    def _from_the_root(self, path: str) -> PurePosixPath | None:
        """Some folder is the site's root: which one, only the site generator knows."""
        if not path:
            return PurePosixPath()
        return next((PurePosixPath(name) for name in _names(path) if name in self._endings), None)


def _names(path: str) -> Iterator[str]:
    path = path.rstrip("/")
    yield from (f"{path}{ending}" for ending in _PAGE_ENDINGS)
    for ending in _HTML:
        if path.endswith(ending):
            yield from (f"{path.removesuffix(ending)}{other}" for other in _PAGE_ENDINGS[1:])


def _endings_of(path: str) -> Iterator[str]:
    """Yields a path without none, one, two … of its first folders."""
    parts = path.split("/")
    return ("/".join(parts[start:]) for start in range(min(len(parts), 8)))


def _normalized(start: PurePosixPath, path: str) -> str | None:
    """Returns the path from the repository's root; None where it leads out of it."""
    parts = list(start.parts)
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/".join(parts) or "."
