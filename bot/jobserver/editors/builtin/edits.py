"""The built-in editor's edits as values, and the phrases of its answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from bot.jobserver.editors.builtin.places import Place
from bot.jobserver.text import cut

_SHORT = 60
"""How many characters of a text are quoted in a summary."""
_MOST_NAMED = 3
"""How many pages are named in a sentence."""


@dataclass(frozen=True)
class Replace:
    """Replaces exact text everywhere in the documents."""

    old: str
    new: str
    where: str | None = None


@dataclass(frozen=True)
class FixSpelling:
    """Corrects misspelt words that have one known correction."""

    where: str | None = None


@dataclass(frozen=True)
class AddPage:
    """Adds a page."""

    title: str
    text: str
    where: str | None = None


@dataclass(frozen=True)
class AddSection:
    """Adds a last section to a page."""

    title: str
    page: str
    text: str


@dataclass(frozen=True)
class RenamePage:
    """Changes a page's title, and renames its file accordingly."""

    page: str
    title: str


@dataclass(frozen=True)
class Rename:
    """Renames the page of this name or, if there is none, replaces the words."""

    old: str
    new: str


Edit = Replace | FixSpelling | AddPage | AddSection | RenamePage | Rename


@dataclass(frozen=True)
class Note:
    """The result of an edit as text."""

    text: str
    changed: bool


def chosen(name: str | None, place: Place) -> str:
    """Says which page or folder was chosen, if that is not clear from the name."""
    if name is None or not place.pages or (place.is_folder and not place.also_called):
        return ""
    if place.is_folder:
        return f'Other folders called "{short(name)}" were left alone: {listed(place.also_called)}.'
    page = place.pages[0]
    others = f"; {listed(place.also_called)} {have(place.also_called)} that name, too" if place.also_called else ""
    return "" if str(page) == name and not others else f'"{short(name)}" was taken to be {page}{others}.'


def nothing_called(words: str, place: str | None) -> Note:
    called = f'no page or folder is called "{short(place)}"' if place else "there are no Markdown pages here"
    return Note(f"{words}: nothing, as {called}.", changed=False)


def listed(paths: Sequence[PurePosixPath]) -> str:
    """Returns the first three paths, and the number of others."""
    named = ", ".join(map(str, paths[:_MOST_NAMED]))
    return named if len(paths) <= _MOST_NAMED else f"{named} and {len(paths) - _MOST_NAMED} more"


def have(paths: Sequence[PurePosixPath]) -> str:
    return "has" if len(paths) == 1 else "have"


def were(number: int) -> str:
    return "was" if number == 1 else "were"


def plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def short(text: str) -> str:
    """Returns the beginning of a text as a single line."""
    return cut(" ".join(text.split()), _SHORT)
