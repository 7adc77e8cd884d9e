"""Pages that no menu leads to, and entries of menus that lead nowhere."""

from collections.abc import Iterator

from bot.jobserver.checks.change import Change

NAME = "navigation"


def pages_without_an_entry(change: Change) -> Iterator[str]:
    yield from ()
