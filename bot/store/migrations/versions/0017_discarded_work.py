"""People can ask to have what a failed job got done thrown away."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_KINDS = (
    "start",
    "follow_up",
    "stop",
    "retry",
    "discard",
    "mute",
    "unmute",
    "show_status",
    "show_prompt",
    "show_answer",
    "show_job_id",
    "send_again",
    "send_new_words",
    "send_held",
    "send_all_held",
    "discard_held",
    "choose_project",
)
_CHECK = f"CHECK (kind IN ({', '.join(repr(kind) for kind in _KINDS)}))"
_NAME = "ck_requests_kind"
_TABLES = ("requests", "request_files")
"""Each refers only to what stands before it."""


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _make_anew()
    else:
        op.execute(f"ALTER TABLE requests DROP CONSTRAINT {_NAME}")
        op.execute(f"ALTER TABLE requests ADD CONSTRAINT {_NAME} {_CHECK}")


def downgrade() -> None:
    raise NotImplementedError("Restore the backup from before.")


def _make_anew() -> None:
    """SQLite cannot change a constraint. What refers to the table is made anew as well: by the time that the old one is
    dropped nothing refers to it, else all that does would go with it.
    """
    made = {table: _definitions(table) for table in _TABLES}
    for table in _TABLES:
        for index in _indexes(table):
            op.drop_index(index)
        op.rename_table(table, f"{table}_before")
    for table in _TABLES:
        create, *indexes = made[table]
        op.execute(create)
        names = ", ".join(column["name"] for column in sa.inspect(op.get_bind()).get_columns(table))
        op.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM {table}_before ORDER BY rowid")  # noqa: S608 - names of ours
        for index in indexes:
            op.execute(index)
    for table in reversed(_TABLES):
        op.drop_table(f"{table}_before")


def _definitions(table: str) -> Sequence[str]:
    """The statements that make a table and its indexes, as they are to be."""
    found = op.get_bind().execute(
        sa.text("SELECT sql FROM sqlite_master WHERE tbl_name = :table AND sql IS NOT NULL ORDER BY type DESC, name"),
        {"table": table},
    )
    return [_with_new_check(definition) for (definition,) in found]


def _with_new_check(definition: str) -> str:
    start = f"\tCONSTRAINT {_NAME} "
    lines = [f"{start}{_CHECK}, " if line.startswith(start) else line for line in definition.split("\n")]
    return "\n".join(lines)


def _indexes(table: str) -> Sequence[str]:
    statement = sa.text("SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = :table AND sql IS NOT NULL")
    return list(op.get_bind().execute(statement, {"table": table}).scalars())
