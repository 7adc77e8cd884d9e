"""Claims: takes due rows so that nobody else takes them, for a time.

A table whose rows are claimed has the columns `due_at` (when a row may be claimed next; NULL: nothing is left to do),
`claimed_by` and `claimed_until`. Whoever changes a row that it has claimed names itself in the condition: an owner
whose claim has ended, and was taken by another, changes nothing.
"""

import os
import secrets
import socket
from typing import Any

from sqlalchemy import ColumnElement, Double, FromClause, Integer, Select, Table, and_, bindparam, or_

NOW = bindparam("now", type_=Double)
LIMIT = bindparam("limit", type_=Integer)
CLAIM: dict[Any, Any] = {"claimed_by": bindparam("owner"), "claimed_until": bindparam("lease_end", type_=Double)}
FREE: dict[str, Any] = {"claimed_by": None, "claimed_until": None}


def owner_name() -> str:
    """Returns a name for this start of a process, which no other has."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


def is_free(table: FromClause, now: Any = NOW) -> ColumnElement[bool]:
    """Returns the condition that no claim on a row is in force."""
    return or_(table.c.claimed_until.is_(None), table.c.claimed_until <= now)


def due(table: FromClause) -> ColumnElement[bool]:
    """Returns the condition that a row may be claimed now: it is due, and no claim on it is in force."""
    return and_(table.c.due_at <= NOW, is_free(table))


def first_due(statement: Select[Any], table: Table, **lock: Any) -> Select[Any]:
    """Makes a statement find what may be claimed now, the most overdue first, and skip what others are claiming."""
    most_overdue = statement.where(due(table)).order_by(table.c.due_at).limit(LIMIT)
    return most_overdue.with_for_update(skip_locked=True, **lock)


def held_by(table: Table, owner: str) -> ColumnElement[bool]:
    """Returns the condition that somebody has claimed a row. Only due rows can be, so their index finds it."""
    return and_(table.c.due_at.is_not(None), table.c.claimed_by == owner)
