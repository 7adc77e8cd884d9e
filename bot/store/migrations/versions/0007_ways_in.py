"""Jobs in any thread, requests that are prepared before they are sent, what people do, prefer and have not sent yet.

SQLite writes all tables anew, which takes their space once more.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_TABLES = ("threads", "polls", "requests", "notices", "early_replies")
"""What the others refer to comes first."""
_LAST_TIME = 100_000_000_000
_KINDS = (
    "start",
    "follow_up",
    "stop",
    "retry",
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
_OPEN = ("received", "preparing", "waiting", "sending")
_STATES = (*_OPEN, "accepted", "rejected", "uncertain", "withdrawn", "awaiting_person")
_OPTIONS = r'{"way_in"\:"command","quiet"\:false,"project_said"\:"","project_reason"\:"only_one"}'
"""A colon that is not escaped would be a parameter."""
_THREAD_COLUMNS = {"card_ts": "ts", "number": "0", "origin": "'card'", "options": f"'{_OPTIONS}'"}
"""The new columns, with their values in the rows that there are: till now a card began its thread."""
_EARLY_REPLY_COLUMNS = {"mentions_us": "1 = 0", "word": "''"}
_REQUEST_COLUMNS = {"team_id": "''", "attachments": "''", "context": "NULL", "merged_into": "''"}

_NEW_COLUMNS = {"threads": _THREAD_COLUMNS, "requests": _REQUEST_COLUMNS, "early_replies": _EARLY_REPLY_COLUMNS}


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _make_anew()
    else:
        _alter_threads()
        _alter_requests()
        _add_columns("early_replies", _EARLY_REPLY_COLUMNS, {"mentions_us": sa.Boolean()}, nullable=set())
    _translate_attachments()
    _index_held_requests()
    _create_audit()
    _create_what_people_prefer()
    _create_homes()


def downgrade() -> None:
    raise NotImplementedError("Restore the backup from before.")


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(f"'{word}'" for word in words)


_CHECKS_OF_REQUESTS = {
    "sending_is_claimed": "(claimed_by IS NOT NULL) = (state IN ('preparing', 'sending'))",
    "open_is_due": f"(due_at IS NOT NULL) = (state IN ({_listed(_OPEN)}))",
    "kind": f"kind IN ({_listed(_KINDS)})",
    "state": f"state IN ({_listed(_STATES)})",
}


# -- SQLite ---------------------------------------------------------------------------------------------------------


def _make_anew() -> None:
    """SQLite cannot change a constraint. All tables are made before one is dropped: by then nothing refers to the
    old `threads`. Else all that belongs to them would go with them.
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
    """The statements that make a table and its indexes, as they are to be."""
    found = op.get_bind().execute(
        sa.text("SELECT sql FROM sqlite_master WHERE tbl_name = :table AND sql IS NOT NULL ORDER BY type DESC, name"),
        {"table": table},
    )
    for (definition,) in found:
        if definition.startswith("CREATE TABLE") and table == "threads":
            yield _new_threads(definition)
        elif definition.startswith("CREATE TABLE") and table == "requests":
            yield _new_requests(definition)
        elif definition.startswith("CREATE TABLE") and table == "early_replies":
            yield definition.replace("CONSTRAINT", "mentions_us BOOLEAN NOT NULL, word TEXT NOT NULL, CONSTRAINT", 1)
        else:
            yield definition


def _new_threads(definition: str) -> str:
    columns = "card_ts TEXT, number INTEGER NOT NULL, origin TEXT NOT NULL, options TEXT NOT NULL"
    checks = (
        "CONSTRAINT ck_threads_number CHECK (number >= 0), "
        "CONSTRAINT ck_threads_origin CHECK (origin IN ('card', 'request', 'conversation')), "
        "CONSTRAINT uq_threads_card UNIQUE (channel_id, card_ts), "
        "CONSTRAINT uq_threads_channel_id UNIQUE (channel_id, ts, number)"
    )
    definition = definition.replace("project_id TEXT", "project TEXT")
    definition = definition.replace("CONSTRAINT uq_threads_channel_id UNIQUE (channel_id, ts)", checks)
    return definition.replace("CONSTRAINT", f"{columns}, \n\tCONSTRAINT", 1)


def _new_requests(definition: str) -> str:
    columns = (
        "team_id TEXT NOT NULL, attachments TEXT NOT NULL, context TEXT, merged_into TEXT NOT NULL, \n\tCONSTRAINT"
    )
    definition = definition.replace("CONSTRAINT", columns, 1)
    lines = definition.split("\n")
    for name, check in _CHECKS_OF_REQUESTS.items():
        start = f"\tCONSTRAINT ck_requests_{name} "
        lines = [f"{start}CHECK ({check}), " if line.startswith(start) else line for line in lines]
    return "\n".join(lines)


def _existing_indexes(table: str) -> list[str]:
    statement = sa.text("SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = :table AND sql IS NOT NULL")
    return list(op.get_bind().execute(statement, {"table": table}).scalars())


def _copy(table: str) -> None:
    names = [column["name"] for column in sa.inspect(op.get_bind()).get_columns(f"{table}_before")]
    new = _NEW_COLUMNS.get(table, {})
    columns = ", ".join([*("project" if name == "project_id" else name for name in names), *new])
    values = ", ".join([*names, *new.values()])
    op.execute(f"INSERT INTO {table} ({columns}) SELECT {values} FROM {table}_before ORDER BY rowid")  # noqa: S608 - names from above


# -- PostgreSQL -----------------------------------------------------------------------------------------------------


def _alter_threads() -> None:
    op.alter_column("threads", "project_id", new_column_name="project")
    types = {"number": sa.Integer()}
    _add_columns("threads", _THREAD_COLUMNS, types, nullable={"card_ts"})
    op.drop_constraint("uq_threads_channel_id", "threads", type_="unique")
    op.create_unique_constraint("uq_threads_channel_id", "threads", ["channel_id", "ts", "number"])
    op.create_unique_constraint("uq_threads_card", "threads", ["channel_id", "card_ts"])
    op.execute("ALTER TABLE threads ADD CONSTRAINT ck_threads_number CHECK (number >= 0)")
    op.execute(
        "ALTER TABLE threads ADD CONSTRAINT ck_threads_origin CHECK (origin IN ('card', 'request', 'conversation'))"
    )


def _alter_requests() -> None:
    _add_columns("requests", _REQUEST_COLUMNS, {}, nullable={"context"})
    for name, check in _CHECKS_OF_REQUESTS.items():
        op.execute(f"ALTER TABLE requests DROP CONSTRAINT ck_requests_{name}")
        op.execute(f"ALTER TABLE requests ADD CONSTRAINT ck_requests_{name} CHECK ({check})")


def _add_columns(
    table: str, columns: dict[str, str], types: Mapping[str, sa.types.TypeEngine[Any]], *, nullable: set[str]
) -> None:
    for name, value in columns.items():
        op.add_column(table, sa.Column(name, types.get(name, sa.Text()), nullable=True))
        if value != "NULL":
            op.execute(f"UPDATE {table} SET {name} = {value}")  # noqa: S608 - names from above
        if name not in nullable:
            op.alter_column(table, name, nullable=False)


# -- both -----------------------------------------------------------------------------------------------------------


def _translate_attachments() -> None:
    connection = op.get_bind()
    rows = connection.execute(sa.text("SELECT DISTINCT attachments FROM early_replies WHERE attachments <> ''"))
    update = sa.text("UPDATE early_replies SET attachments = :new WHERE attachments = :old")
    for (old,) in list(rows):
        connection.execute(update, {"old": old, "new": _attachments(old)})


def _attachments(old: str) -> str:
    """What a kept reply holds besides words: of files the names were kept, of a forwarded message that there is one."""
    try:
        found = json.loads(old)
        files = [{"id": "", "name": str(name)} for name in found["files"]]
        forwarded = [{"author": "", "text": ""}] if found["forwarded"] else []
    except (ValueError, KeyError, TypeError):
        return ""
    return json.dumps({"files": files, "forwarded": forwarded}, ensure_ascii=False)


def _time(column: str) -> sa.CheckConstraint:
    """Its name, like those of all checks, gets the table's before it."""
    return sa.CheckConstraint(f"{column} BETWEEN 0 AND {_LAST_TIME}", name=column)


def _texts(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _index_held_requests() -> None:
    held = sa.text("state = 'awaiting_person'")
    op.create_index("ix_requests_held", "requests", ["recorded_at"], sqlite_where=held, postgresql_where=held)


def _create_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        *_texts("action", "person_id", "team_id", "channel_id", "thread_id", "job_id", "project", "way_in", "reason"),
        _time("at"),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_at", "audit", ["at", "id"])
    op.create_index("ix_audit_person_id", "audit", ["person_id", "at"])
    op.create_index("ix_audit_channel_id", "audit", ["channel_id", "at"])


def _create_what_people_prefer() -> None:
    op.create_table(
        "drafts",
        *_texts("person_id", "place", "text"),
        sa.Column("updated_at", sa.Double(), nullable=False),
        _time("updated_at"),
        sa.PrimaryKeyConstraint("person_id", "place", name="pk_drafts"),
    )
    op.create_index("ix_drafts_updated_at", "drafts", ["updated_at"])
    op.create_table(
        "preferences",
        *_texts("person_id", "project"),
        sa.Column("quiet", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("person_id", name="pk_preferences"),
    )


def _create_homes() -> None:
    due = sa.text("due_at IS NOT NULL")
    op.create_table(
        "homes",
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("page", sa.Integer(), nullable=False),
        sa.Column("opened_at", sa.Double(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_until", sa.Double(), nullable=True),
        sa.CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name="claim"),
        sa.CheckConstraint("claimed_by IS NULL OR due_at IS NOT NULL", name="claimed_is_due"),
        sa.CheckConstraint("page >= 0", name="page"),
        *(_time(column) for column in ("opened_at", "due_at", "claimed_until")),
        sa.PrimaryKeyConstraint("person_id", name="pk_homes"),
    )
    op.create_index("ix_homes_opened_at", "homes", ["opened_at"])
    op.create_index("ix_homes_due_at", "homes", ["due_at"], sqlite_where=due, postgresql_where=due)
