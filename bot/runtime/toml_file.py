"""Reads settings from TOML files. What is wrong with one is said without quoting it, since it may hold keys."""

import tomllib
from pathlib import Path
from typing import Any

from bot.errors import ConfigError

_LARGEST = 1 << 20
"""Bytes."""


def content_of(file: Path, named_by: str) -> bytes:
    """Returns what is in the file that a setting names. Raises ConfigError if it cannot be read."""
    try:
        with file.open("rb") as stream:
            return stream.read(_LARGEST)
    except OSError as error:
        raise ConfigError([f"{named_by} names a file that cannot be read: {error.strerror}"]) from None


def tables_in(content: bytes, named_by: str) -> dict[str, Any]:
    """Returns the tables of the file that a setting names. Raises ConfigError if it is not TOML."""
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError:
        what = "names a file that cannot be read: it is not text"
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        _, at, place = str(error).rpartition("(at ")
        what = f"names a file that is not TOML {at}{place if at else ''}".rstrip()
    # Raised outside of the except clause, because the original error contains the file's text.
    raise ConfigError([f"{named_by} {what}"])
