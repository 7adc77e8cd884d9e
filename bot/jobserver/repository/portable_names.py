"""Names that other systems cannot hold, or cannot tell apart: they are proposed, and told. Pure."""

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath
from unicodedata import normalize

from bot.jobserver.repository.tree_paths import tree_path

_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)[ ]*(?:\..*)?", re.IGNORECASE | re.DOTALL
)
_FORBIDDEN = re.compile(r'[<>:"|?*\\\x00-\x1f]')


def unportable(new: Collection[PurePosixPath], all_paths: Collection[PurePosixPath]) -> Iterator[str]:
    """Yields in words what is odd about the names of new files, beside all files that there are after the change."""
    yield from (
        f"`{path}` has a name that Windows cannot hold" for path in new if not all(map(_is_portable, path.parts))
    )
    if not new:
        return
    places = {place for path in new for place in (path, *path.parents)}
    known = _by_folded(all_paths, set(map(_folded, places)))
    told = set[PurePosixPath]()
    for path in new:
        for place in (path, *list(path.parents)[:-1]):
            others = known[_folded(place)] - {place}
            if others and place not in told:
                told |= others | {place}
                yield f"`{place}` and `{min(others)}` are one file where capitals or accents make no difference"


def _is_portable(name: str) -> bool:
    return not (_RESERVED.fullmatch(name) or _FORBIDDEN.search(name) or name.endswith((" ", ".")))


def folders_of(paths: Iterable[PurePosixPath]) -> set[PurePosixPath]:
    """Returns all folders that these paths lie in, the root included."""
    found = set[str]()
    for path in paths:
        folder = str(path).rpartition("/")[0]
        while folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return set(map(tree_path, found))


def _by_folded(paths: Collection[PurePosixPath], wanted: Collection[str]) -> dict[str, set[PurePosixPath]]:
    found: dict[str, set[PurePosixPath]] = {}
    for place in {*paths, *folders_of(paths)}:
        if (folded := _folded(place)) in wanted:
            found.setdefault(folded, set()).add(place)
    return found


def _folded(path: PurePosixPath) -> str:
    """As Windows and macOS compare."""
    text = str(path)
    return text.lower() if text.isascii() else normalize("NFD", normalize("NFD", text).upper().casefold())
