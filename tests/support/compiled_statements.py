"""Lets all database engines of a test process share SQLAlchemy's compiled statements.

Nearly every test makes a new engine. Compiling all statements again for each was half of the time of such a test.
"""

from typing import Any

from sqlalchemy import Connection, Dialect, event
from sqlalchemy.engine import Engine

_dialects: dict[type[Dialect], Dialect] = {}
_compiled: dict[Any, Any] = {}
"""Its keys are SQLAlchemy's, and contain the dialect."""


def share_compiled_statements() -> None:
    """From now on, a connection uses the cache, and its dialect's first instance, because that is part of the key."""
    event.listen(Engine, "engine_connect", _share)


def _share(connection: Connection) -> None:
    connection.dialect = _dialects.setdefault(type(connection.dialect), connection.dialect)
    connection.execution_options(compiled_cache=_compiled)
