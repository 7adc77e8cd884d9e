"""Chooses the folder of a new page by its subject; never that of a changelog or of a README only. Pure."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from bot.jobserver.documents.languages import is_translation
from bot.jobserver.documents.page import is_record, slug
from bot.jobserver.editors.builtin.places import most_common_suffix

_ABOUT_THE_REPOSITORY = frozenset(
    ("agents", "authors", "claude", "contributing", "gemini", "governance", "maintainers", "roadmap", "security",
     "support", "todo")
)  # fmt: skip
"""Pages at the root that are about the repository rather than its subject."""
_PARTS_OF_PAGES = re.compile(
    r"[._].*|archetypes|includes?|layouts|node_modules|partials|snippets|templates?|versioned_docs"
)
_TRIALS = re.compile(r"demos?|examples?|fixtures|playgrounds?|test(?:s|-?data)?|testing|vendor")
_PROGRAMS = re.compile(r"components|hack|lib|packages?|pkg|src")
"""Folders whose contents are not part of the site, unless they are folders of pages or there are no other pages."""
_HOLDS_PAGES = frozenset(("content", "doc", "docs", "documentation", "pages"))
_VERSION = re.compile(r"(?:^|/)(?:v|version-)?(\d{1,4})(?:\.?x|\.\d+)*(?:/|$)")
_FIRST_PAGES = frozenset(("index", "home"))
_LEGAL = frozenset(("code-of-conduct", "copying", "licence", "license", "notice"))
_USUAL = tuple(map(PurePosixPath, ("docs", "doc", "documentation", "content", "docs/source", "docs/src", "website/docs",
                                   "content/docs", "src/content/docs", "src/docs", "src")))  # fmt: skip
_GENERAL = frozenset(("docs", "guide", "guides", "help", "how-to", "howto", "learn", "topics", "user-guide"))
_NEW_FOLDER = PurePosixPath("docs")
_SAYS_LITTLE = frozenset(
    ("about", "and", "are", "can", "docs", "documentation", "for", "from", "guide", "guides", "how", "into", "more",
     "new", "not", "our", "page", "pages", "that", "the", "this", "use", "using", "what", "when", "with", "you", "your")
)  # fmt: skip
_SHORTEST_WORD, _SHORTEST_STEM, _SAME_BEGINNING = 3, 5, 6
_FEW = 2
"""How many pages beside a README make its folder one for pages."""
_MANY = 3
"""How many pages show that a folder is for all subjects, even if it has subfolders."""


@dataclass(frozen=True)
class NewPlace:
    """A folder and a file suffix. `others`: equally suitable folders, the likeliest first."""

    folder: PurePosixPath
    suffix: str
    others: tuple[PurePosixPath, ...] = ()


def place_for(title: str, paths: Sequence[PurePosixPath], sites: Collection[PurePosixPath]) -> NewPlace:
    """Returns where a page with this title belongs. `sites`: the root folders of navigation files."""
    sites = {site for site in sites if not _is_apart(site)}
    pages = _of_the_site(_ordinary(paths), sites)
    folders = _folders(pages, paths, sites)
    if not folders:
        return NewPlace(_NEW_FOLDER, suffix_in(_NEW_FOLDER, paths))
    ordered = sorted(folders, key=lambda folder: _rank(folder, folders, sites))
    held = _by_folder(pages)
    scores = {folder: _score(title, folder, held.get(folder, ())) for folder in ordered}
    best = max(ordered, key=lambda folder: scores[folder])
    rest = [folder for folder in ordered if folders[folder] and folder not in {best, PurePosixPath()}]
    as_good = [folder for folder in rest if scores[folder] == scores[best]]
    if not scores[best] and folders[best] >= _MANY and _is_general(best, sites):
        as_good = [folder for folder in as_good if folder.name.lower() in _GENERAL]
    return NewPlace(best, suffix_in(best, paths), tuple(as_good))


def suffix_in(folder: PurePosixPath, paths: Sequence[PurePosixPath]) -> str:
    """Returns the suffix of most pages in the folder, or else in the repository."""
    pages = _ordinary(paths)
    return most_common_suffix([path for path in pages if path.parent == folder] or pages or paths)


def is_neighbour(path: PurePosixPath, place: NewPlace) -> bool:
    """Tells whether a page can be a model for new ones in a place."""
    return path.parent == place.folder and path.suffix == place.suffix and _is_ordinary(path)


def _ordinary(paths: Sequence[PurePosixPath]) -> list[PurePosixPath]:
    """Returns the pages that show where new ones belong; those among source code only if there are no others."""
    pages = [path for path in paths if _is_ordinary(path)]
    outside = [path for path in pages if not _is_in_program(path)]
    return outside or (pages if len(pages) >= _MANY else [])


@lru_cache(maxsize=65_536)  # asked of all pages, three times for each new one
def _is_ordinary(path: PurePosixPath) -> bool:
    name = slug(path.stem).replace("_", "-")
    about = name in {*_LEGAL, "readme"} or (name in _ABOUT_THE_REPOSITORY and len(path.parts) == 1)
    return not (about or _is_apart(path.parent) or is_record(path) or is_translation(path))


@lru_cache(maxsize=4_096)
def _is_apart(folder: PurePosixPath) -> bool:
    parts = [part.lower().replace("_", "-") for part in folder.parts]
    is_trial = any(map(_TRIALS.fullmatch, parts)) and not _HOLDS_PAGES & set(parts[:1])
    return is_trial or any(map(_PARTS_OF_PAGES.fullmatch, map(str.lower, folder.parts)))


def _is_in_program(path: PurePosixPath) -> bool:
    folders = [part.lower() for part in path.parts[:-1]]
    return any(map(_PROGRAMS.fullmatch, folders)) and not _HOLDS_PAGES & set(folders)


def _of_the_site(pages: list[PurePosixPath], sites: Collection[PurePosixPath]) -> list[PurePosixPath]:
    """Returns the pages below navigation files, or else in the folder that contains most pages."""
    held = Counter(path.parent for path in pages)
    above = {folder: {folder, *folder.parents} for folder in held}
    listed = [path for path in pages if not above[path.parent].isdisjoint(sites)]
    if listed:
        return listed
    trees = Counter[PurePosixPath]()
    for folder, count in held.items():
        trees.update({tree: count for tree in above[folder] if tree.name.lower() in _HOLDS_PAGES})
    tree = max(trees, key=lambda tree: (trees[tree], -len(tree.parts), tree), default=None)
    return [path for path in pages if tree in above[path.parent]] if tree and 2 * trees[tree] > len(pages) else pages


def _folders(
    pages: Sequence[PurePosixPath], paths: Sequence[PurePosixPath], sites: Collection[PurePosixPath]
) -> Counter[PurePosixPath]:
    """Counts the ordinary pages of each folder; those with a README need a few others."""
    beside_readme = {path.parent for path in paths if path.stem.lower() == "readme"} - set(sites)
    counts = Counter(dict.fromkeys((path.parent for path in pages), 0))
    counts.update(path.parent for path in pages if slug(path.stem).strip("_") not in _FIRST_PAGES)
    return Counter({folder: n for folder, n in counts.items() if folder not in beside_readme or n >= _FEW})


def _rank(
    folder: PurePosixPath, folders: Counter[PurePosixPath], sites: Collection[PurePosixPath]
) -> tuple[tuple[bool, ...], tuple[int, ...], PurePosixPath]:
    is_root, is_special = folder == PurePosixPath() and folder not in sites, not _is_general(folder, sites)
    is_usual = folders[folder] and (folder in sites or folder in _USUAL)
    usual = (-1 if folder in sites else _USUAL.index(folder)) if is_usual else len(_USUAL)
    kind = (is_root, not is_usual, is_special, not folders[folder])
    return kind, (usual, len(folder.parts), -_version(folder), -folders[folder]), folder


def _is_general(folder: PurePosixPath, sites: Collection[PurePosixPath]) -> bool:
    return folder in sites or folder in _USUAL or folder.name.lower() in _GENERAL


def _version(folder: PurePosixPath) -> int:
    """Returns the version in a folder's path, or 0."""
    found = _VERSION.search(str(folder))
    return int(found[1]) if found else 0


def _score(title: str, folder: PurePosixPath, pages: Sequence[PurePosixPath]) -> int:
    """Returns how similar a title is to a folder's name and, with less weight, to those of its pages."""
    wanted = _words(title)
    named = sum(min(len(word), _SHORTEST_STEM) for word in wanted if _is_among(word, _words(folder.name)))
    return named + max((_in_common(wanted, _words(path.stem)) for path in pages), default=0)


def _by_folder(pages: Sequence[PurePosixPath]) -> dict[PurePosixPath, list[PurePosixPath]]:
    found: dict[PurePosixPath, list[PurePosixPath]] = {}
    for path in pages:
        found.setdefault(path.parent, []).append(path)
    return found


def _in_common(wanted: set[str], words: set[str]) -> int:
    """Returns how many words two names share, if these are most of either name; otherwise 0."""
    shared = sum(_is_among(word, words) for word in wanted)
    return shared if 2 * shared > min(len(wanted), len(words)) else 0


def _words(name: str) -> set[str]:
    words = slug(name).replace("_", "-").split("-")
    return {word for word in words if len(word) >= _SHORTEST_WORD} - _SAYS_LITTLE


def _is_among(word: str, others: set[str]) -> bool:
    return any(_are_related(word, other) for other in others)


def _are_related(one: str, other: str) -> bool:
    """Tells whether two words probably share a stem, such as deploy and deployment."""
    same = next((index for index, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)
    if same is None:
        return one.removesuffix("s") == other.removesuffix("s") or min(len(one), len(other)) >= _SHORTEST_STEM
    return same >= _SAME_BEGINNING and 2 * same >= max(len(one), len(other))
