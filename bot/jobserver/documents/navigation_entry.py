"""What every navigation file has: entries at places of its text."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class NewEntry:
    """What is to be added; `target` is written as the neighbour's is."""

    title: str
    target: str


@dataclass(frozen=True)
class Entry:
    """An entry, as it was written. `end` is where a next one can be inserted, `render` writes that one.

    `folder` is a language's, to which `target` is relative.
    """

    target: str
    end: int
    render: Callable[[NewEntry], str]
    folder: str = ""


def insert(text: str, neighbour: Entry, new: NewEntry) -> str:
    """Returns the text with a new entry after a neighbour, and with the line ends that it has."""
    rendered = neighbour.render(new)
    if "\r\n" in text:
        rendered = rendered.replace("\n", "\r\n")
    return text[: neighbour.end] + rendered + text[neighbour.end :]


def line_end(text: str, position: int) -> int:
    """Returns where the line of a position ends, before its line end."""
    end = text.find("\n", position)
    end = len(text) if end < 0 else end
    return end - 1 if text[max(0, end - 1) : end] == "\r" else end
