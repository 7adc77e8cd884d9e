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
            content = stream.read(_LARGEST + 1)
    except OSError as error:
        raise ConfigError([f"{named_by} names a file that cannot be read: {error.strerror}"]) from None
    if len(content) > _LARGEST:  # its beginning may be valid, and lack what restricts something
        raise ConfigError([f"{named_by} names a file that is larger than 1 MiB"])
    return content


def tables_in(content: bytes, named_by: str) -> dict[str, Any]:
    """Returns the tables of the file that a setting names. Raises ConfigError if it is not TOML."""
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        what = "names a file that cannot be read: it is not text"
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits
        words, at, place = str(error).rpartition("(at ")
        fault = "has the same name twice" if "twice" in words or "overwrite" in words else "is not TOML"
        what = f"names a file that {fault} {at}{place if at else ''}".rstrip()
    # Raised outside of the except clause, because the original error contains the file's text.
    raise ConfigError([f"{named_by} {what}"])
