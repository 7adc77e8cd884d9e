"""Finds the pages that a person means by "the quickstart" or "the guides": the nearest, in the main language."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from bot.jobserver.documents.languages import is_translation
from bot.jobserver.documents.page import slug

_WHOLE = frozenset(("docs", "doc"))
"""Names that mean all pages if there is no such folder."""
Title = Callable[[PurePosixPath], str | None]


@dataclass(frozen=True)
class Place:
    """The chosen pages; `also_called` are others with the same name."""

    pages: tuple[PurePosixPath, ...]
    is_folder: bool = False
    also_called: tuple[PurePosixPath, ...] = ()


def find_place(paths: Sequence[PurePosixPath], place: str, title: Title) -> Place:
    """Returns the pages that a path, the name of a folder or page, or a page's title means.

    Returns no pages if nothing has that name, or for a path outside the repository.
    """
    wanted = PurePosixPath(place.replace("\\", "/").removeprefix("./").rstrip("/") or ".")
    if wanted.is_absolute() or ".." in wanted.parts:
        return Place(())
    exact = tuple(path for path in paths if path == wanted or wanted in path.parents)
    if exact:
        return Place(exact, is_folder=exact != (wanted,))
    if len(wanted.parts) > 1:
        return _nearest_page([path for path in paths if _ends_with(path, wanted)])
    found = _named(paths, place) or _titled(paths, place, title)
    return Place(tuple(paths), is_folder=True) if not found.pages and slug(place) in _WHOLE else found


def find_page(paths: Sequence[PurePosixPath], page: str, title: Title) -> Place:
    """Returns the one page that a person means; never a folder, but possibly a folder's index page."""
    wanted = PurePosixPath(page.replace("\\", "/").removeprefix("./"))
    if wanted in paths:
        return Place((wanted,))
    if wanted.is_absolute() or ".." in wanted.parts:
        return Place(())
    if len(wanted.parts) > 1:
        return _nearest_page([path for path in paths if _ends_with(path, wanted)])
    found = _nearest_page([path for path in paths if slug(page) and slug(page) in {slug(path.stem), slug(path.name)}])
    return found if found.pages else _titled(paths, page, title)


def _named(paths: Sequence[PurePosixPath], place: str) -> Place | None:
    for form in _forms(slug(place)):
        folders = {parent for path in paths for parent in path.parents if parent.name and slug(parent.name) == form}
        if folders:
            return _nearest_folder(paths, folders)
        pages = [path for path in paths if form in {slug(path.name), slug(path.stem)}]
        if pages:
            return _nearest_page(pages)
    return None


def _titled(paths: Sequence[PurePosixPath], place: str, title: Title) -> Place:
    wanted = slug(place)
    return _nearest_page([path for path in paths if wanted and slug(title(path) or "") == wanted])


def _nearest_folder(paths: Sequence[PurePosixPath], folders: set[PurePosixPath]) -> Place:
    first = min(folders, key=_distance)
    others = sorted(folder for folder in folders if folder != first and first not in folder.parents)
    return Place(tuple(path for path in paths if first in path.parents), is_folder=True, also_called=tuple(others))


def _nearest_page(pages: Sequence[PurePosixPath]) -> Place:
    ordered = sorted(pages, key=_distance)
    return Place(tuple(ordered[:1]), also_called=tuple(ordered[1:]))


def _distance(path: PurePosixPath) -> tuple[bool, int, PurePosixPath]:
    return is_translation(path / "page"), len(path.parts), path


def _ends_with(path: PurePosixPath, wanted: PurePosixPath) -> bool:
    count = len(wanted.parts)
    return wanted.parts in (path.parts[-count:], path.with_suffix("").parts[-count:])


def _forms(name: str) -> tuple[str, ...]:
    return (name, name.removesuffix("s") if name.endswith("s") else f"{name}s") if name else ()


def most_common_suffix(paths: Sequence[PurePosixPath]) -> str:
    """Returns the suffix that most pages have."""
    counts = Counter(path.suffix for path in paths)
    return max(counts, key=lambda suffix: (counts[suffix], suffix), default=".md")


def named_folder(folders: set[PurePosixPath], place: str) -> PurePosixPath | None:
    """Returns the folder that a person means; None if none has that name."""
    wanted = PurePosixPath(place.removeprefix("./"))
    if wanted in folders:
        return wanted
    found = sorted((folder for folder in folders if folder.name and slug(folder.name) == slug(place)), key=_distance)
    return found[0] if found else None
