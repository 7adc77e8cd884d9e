"""Columns for texts that other people write, and the names of constraints."""

import hashlib
from typing import Any

from sqlalchemy import Dialect, MetaData, Text
from sqlalchemy.types import TypeDecorator

LONGEST_KEY = 255
"""Characters. Keys are in unique indexes, and PostgreSQL rejects index rows beyond about 2,700 bytes."""


def storable(text: str) -> str:
    """Returns the text with a replacement character for what a database rejects: NUL and lone surrogates."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def storable_json(value: Any) -> Any:
    """Returns a JSON value with all its texts storable."""
    match value:
        case str():
            return storable(value)
        case dict():
            return {storable(key): storable_json(item) for key, item in value.items()}
        case list():
            return [storable_json(item) for item in value]
        case _:
            return value


def shortened_key(key: str) -> str:
    """Returns the key or, if it is too long for an index, its beginning and a digest of the whole."""
    key = storable(key)
    if len(key) <= LONGEST_KEY:
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()
    return f"{key[: LONGEST_KEY - len(digest) - 1]}~{digest}"


class CleanText(TypeDecorator[str]):
    """A text column. All values written or queried are made storable first."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        return None if value is None else storable(value)


class KeyText(CleanText):
    """A text column with a unique index over keys that others define, such as Slack's ids."""

    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        return None if value is None else shortened_key(value)


def named_metadata() -> MetaData:
    """Returns a collection of tables whose constraints and indexes have the same names in every database."""
    return MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "ix": "ix_%(table_name)s_%(column_0_name)s",
        }
    )
