"""Names that other systems cannot hold, or cannot tell apart: they are proposed, and told. Pure."""

import re
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath
from unicodedata import normalize

_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)[ ]*(?:\..*)?", re.IGNORECASE | re.DOTALL
)
_FORBIDDEN = re.compile(r'[<>:"|?*\\\x00-\x1f]')


def unportable(new: Collection[PurePosixPath], all_paths: Collection[PurePosixPath]) -> Iterator[str]:
    """Yields in words what is odd about the names of new files, beside all files that there are after the change."""
    yield from (
        f"`{path}` has a name that Windows cannot hold" for path in new if not all(map(_is_portable, path.parts))
    )
    known = _by_folded(all_paths)
    told = set[PurePosixPath]()
    for path in new:
        for place in (path, *list(path.parents)[:-1]):
            others = known[_folded(place)] - {place}
            if others and place not in told:
                told |= others | {place}
                yield f"`{place}` and `{min(others)}` are one file where capitals or accents make no difference"


def _is_portable(name: str) -> bool:
    return not (_RESERVED.fullmatch(name) or _FORBIDDEN.search(name) or name.endswith((" ", ".")))


def _by_folded(paths: Collection[PurePosixPath]) -> dict[str, set[PurePosixPath]]:
    found: dict[str, set[PurePosixPath]] = {}
    seen = set[PurePosixPath]()
    for path in paths:
        for place in (path, *path.parents):
            if place in seen:
                break
            seen.add(place)
            found.setdefault(_folded(place), set()).add(place)
    return found


def _folded(path: PurePosixPath) -> str:
    """As Windows and macOS compare."""
    text = str(path)
    return text.lower() if text.isascii() else normalize("NFD", normalize("NFD", text).upper().casefold())
