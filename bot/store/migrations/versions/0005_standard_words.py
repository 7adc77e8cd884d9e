"""Tables, columns and values have the words that the program uses.

Every request changes. SQLite writes all tables anew, which takes their space once more.
"""

import re
from collections.abc import Iterator, Mapping

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_TABLES = ("threads", "watches", "requests", "notices")
"""What the others refer to comes first."""
_COLUMNS: Mapping[str, dict[str, str]] = {
    "threads": {"asker_id": "requester_id", "touched_at": "updated_at", "known": "state"},
    "watches": {},
    "requests": {"newest": "latest_text"},
    "notices": {},
    "early_replies": {"extras": "attachments"},
}
_VALUES: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("requests", "state"): {"taken": "accepted", "refused": "rejected", "unsure": "uncertain"},
}
_OTHER_NAMES = {"watches": "polls", "claimed_is_watched": "claimed_is_due"}
"""Names of a table, and of constraints and indexes."""
_CONSTRAINTS_OF = "SELECT conname FROM pg_constraint WHERE conrelid = CAST(:table AS regclass)"
_INDEXES_OF = "SELECT relname FROM pg_index JOIN pg_class ON oid = indexrelid WHERE indrelid = CAST(:table AS regclass)"
_TWICE = re.compile(r"ck_(\w+)_ck_\1_")
"""How earlier migrations made the names of checks: with the table's name twice."""


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _make_anew()
    else:
        _alter()
    op.alter_column("early_replies", "extras", new_column_name="attachments")


def downgrade() -> None:
    raise NotImplementedError("Restore the backup from before.")


def _make_anew() -> None:
    """SQLite can change neither a check nor the name of one.

    All four tables are made before one is dropped: by then nothing refers to the old `threads`. Else all that belongs
    to them would go with them.
    """
    made = {table: list(_definitions(table)) for table in _TABLES}
    for table in _TABLES:
        for index in _existing_indexes(table):
            op.drop_index(index)
        op.rename_table(table, f"{table}_before")
    for table in _TABLES:
        create, *indexes = made[table]
        op.execute(create)
        _copy(table)
        for index in indexes:
            op.execute(index)
    # Ids of notices are never used again, not even those of rows that were deleted.
    op.execute("DELETE FROM sqlite_sequence WHERE name = 'notices'")
    op.execute("UPDATE sqlite_sequence SET name = 'notices' WHERE name = 'notices_before'")
    for table in reversed(_TABLES):
        op.drop_table(f"{table}_before")


def _definitions(table: str) -> Iterator[str]:
    """The statements that make a table and its indexes, in the new words."""
    found = op.get_bind().execute(
        sa.text("SELECT sql FROM sqlite_master WHERE tbl_name = :table AND sql IS NOT NULL ORDER BY type DESC, name"),
        {"table": table},
    )
    for (definition,) in found:
        yield _in_new_words(table, definition)


def _in_new_words(table: str, definition: str) -> str:
    values = {f"'{old}'": f"'{new}'" for (of, _), words in _VALUES.items() if of == table for old, new in words.items()}
    definition = _TWICE.sub(r"ck_\1_", definition)
    for old, new in (_OTHER_NAMES | _COLUMNS[table] | values).items():
        definition = re.sub(rf"(?<![a-z]){old}(?![a-z])", new, definition)
    return definition


def _existing_indexes(table: str) -> list[str]:
    statement = sa.text("SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = :table AND sql IS NOT NULL")
    return list(op.get_bind().execute(statement, {"table": table}).scalars())


def _copy(table: str) -> None:
    names = [column["name"] for column in sa.inspect(op.get_bind()).get_columns(f"{table}_before")]
    columns = ", ".join(_COLUMNS[table].get(name, name) for name in names)
    values = ", ".join(_new_value(table, name) for name in names)
    into = _OTHER_NAMES.get(table, table)
    op.execute(f"INSERT INTO {into} ({columns}) SELECT {values} FROM {table}_before ORDER BY rowid")  # noqa: S608 - names from above


def _alter() -> None:
    for table in _TABLES:
        for name in _names(_CONSTRAINTS_OF, table):
            _rename(table, name, f"ALTER TABLE {table} RENAME CONSTRAINT {name} TO")
        for name in _names(_INDEXES_OF, table):
            _rename(table, name, f"ALTER INDEX {name} RENAME TO")
        for old, new in _COLUMNS[table].items():
            op.alter_column(table, old, new_column_name=new)
    op.rename_table("watches", "polls")
    _translate("requests", "state", ("waiting", "sending", "accepted", "rejected", "uncertain", "withdrawn"))


def _names(statement: str, table: str) -> list[str]:
    return list(op.get_bind().execute(sa.text(statement), {"table": table}).scalars())


def _rename(table: str, name: str, statement: str) -> None:
    new = _in_new_words(table, name)
    if new != name:
        op.execute(f"{statement} {new}")


def _translate(table: str, column: str, allowed: tuple[str, ...]) -> None:
    check, listed = f"ck_{table}_{column}", ", ".join(f"'{value}'" for value in allowed)
    old = ", ".join(f"'{value}'" for value in _VALUES[table, column])
    op.execute(f"ALTER TABLE {table} DROP CONSTRAINT {check}")
    op.execute(f"UPDATE {table} SET {column} = {_new_value(table, column)} WHERE {column} IN ({old})")  # noqa: S608 - names from above
    op.execute(f"ALTER TABLE {table} ADD CONSTRAINT {check} CHECK ({column} IN ({listed}))")


def _new_value(table: str, column: str) -> str:
    """The expression that makes a column's new value of its old one."""
    words = _VALUES.get((table, column))
    if words is None:
        return column
    cases = " ".join(f"WHEN '{old}' THEN '{new}'" for old, new in words.items())
    return f"CASE {column} {cases} ELSE {column} END"
