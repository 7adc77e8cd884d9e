"""The two lanes that tests run in, the default and the full one; `tests/README.md` says what each proves."""

from zlib import crc32

import pytest


def divide(item: pytest.Item) -> None:
    """Moves to the full lane: one database of an `either_database` test, SQLite for half of these tests, and the
    variants of a `first` test that come later in a list of parameters.
    """
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return
    if item.get_closest_marker("either_database") and _is_other_database(item):
        item.add_marker("full")
    first = item.get_closest_marker("first")
    if first and any(item.callspec.indices[name] >= number for name, number in first.kwargs.items()):
        item.add_marker("full")


def _is_other_database(item: pytest.Function) -> bool:
    databases = ("sqlite", "postgres")
    chosen = databases[crc32(f"{item.path.name} {item.originalname}".encode()) % 2]
    return any(value in databases and value != chosen for value in item.callspec.params.values())
