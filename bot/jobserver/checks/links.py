"""Links between files of the repository that the change broke, or that lead to no file from the start.

Only what is sure is reported: relative links to files. Whatever a site decides (addresses without a file's name, paths
from its root, aliases, other languages' pages, anchors) is left alone, and so are faults that the base has.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from posixpath import normpath
from urllib.parse import unquote

from bot.jobserver.checks.change import CheckedChange
from bot.jobserver.documents import UNREAD, is_markdown
from bot.jobserver.repository.listings import Snapshot

NAME = "links"
_TARGET = re.compile(
    r"\]\([ ]{0,9}(?:<(?P<angle>[^<>\n]{1,500})>|(?P<inline>(?:[^\s<>()]|\([^\s<>()]{0,200}\)){1,500}))"
    r"|^[ ]{0,3}\[[^\[\]\n]{1,200}\]:[ ]{0,9}<?(?P<defined>[^\s<>]{1,500})"
    r"|<(?:a|img)[^<>]{0,300}?\s(?:href|src)=[\"'](?P<html>[^\"'<>\n]{1,500})",
    re.MULTILINE | re.IGNORECASE,
)
_NOT_A_PATH = re.compile(r"[/#?@~\\]|[a-z][a-z0-9+.-]*:|.*(?:[{}$|*]|%(?![0-9a-f]{2}))", re.IGNORECASE)
_PAGES = (".md", ".mdx", ".markdown", ".rst", ".adoc")
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".pdf")
_PARTS = frozenset(("snippets", "includes", "partials", "templates"))
"""Folders whose pages are parts of others, from which their links are relative."""
_LANGUAGE = re.compile(r"[a-z]{2}(?:[-_][A-Za-z]{2,4})?")


def broken_links(change: CheckedChange) -> Iterator[str]:
    """Yields links that worked before the change, and new ones to pages and pictures that are not there.

    Raises:
        TimeoutError: the time limit of the check has passed.
    """
    changed = frozenset(change.changed_pages)
    read = filter(is_markdown, change.paths if change.removed else changed)  # any page may link to what was removed
    before = dict(_broken(change.before, change.texts(change.before, filter(is_markdown, changed | change.removed))))
    moved = frozenset[str]().union(*(targets for page, targets in before.items() if page in change.removed))
    is_missing = _missing_for_sure(change.paths)
    for page, text in change.texts(change.after, sorted(read)):
        known = moved | before.get(page, set())
        for line, target in _links(text):
            file = _file(page, target)
            if file is None or target in known or change.after.may_hold(file):
                continue
            if file in change.removed or (page in changed and is_missing(page, file)):
                yield f"{page}:{line}: the link to `{target}` leads to no file"


def _broken(snapshot: Snapshot, texts: Iterable[tuple[PurePosixPath, str]]) -> Iterator[tuple[PurePosixPath, set[str]]]:
    """Yields pages with the targets there that lead to no file."""
    for page, text in texts:
        files = ((target, _file(page, target)) for _, target in _links(text))
        yield page, {target for target, file in files if file and not snapshot.may_hold(file)}


def _links(text: str) -> Iterator[tuple[int, str]]:
    """Yields the targets of links and images outside code and comments, each with its line, from 1."""
    text = UNREAD.sub(lambda found: "\n" * found[0].count("\n"), text)
    line, position = 1, 0
    for found in _TARGET.finditer(text):
        line, position = line + text.count("\n", position, found.start()), found.start()
        yield line, next(filter(None, found.groups()))


def _file(page: PurePosixPath, target: str) -> PurePosixPath | None:
    """Returns the path that a relative link means; None for the others, and for those that lead out."""
    path = unquote(re.split("[#?]", target, maxsplit=1)[0])
    if not path or _NOT_A_PATH.match(target):
        return None
    file = PurePosixPath(normpath(f"{page.parent}/{path}"))
    return None if ".." in file.parts or file.is_absolute() else file


def _missing_for_sure(paths: Collection[PurePosixPath]) -> Callable[[PurePosixPath, PurePosixPath], bool]:
    """Returns a function that tells whether no site generator would find a page's file, which is not among these.

    A page counts as what it would be called in a site of one language: it is shown where a translation is missing.
    """
    names, originals = {path.name for path in paths}, set(map(_original, paths))

    def is_missing(page: PurePosixPath, file: PurePosixPath) -> bool:
        if page.name.startswith("_") or _PARTS.intersection(page.parts) or "{" in str(page):
            return False
        if file.suffix.lower() in _PICTURES:
            return file.name not in names
        return file.suffix.lower() in _PAGES and _original(file) not in originals

    return is_missing


def _original(path: PurePosixPath) -> Sequence[str]:
    return tuple(part for part in path.parts if not _LANGUAGE.fullmatch(part))
