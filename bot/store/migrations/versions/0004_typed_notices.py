"""Notices hold typed messages, and threads their state under the names of today.

Notices had a word for what happened (`what`) and an object of texts (`facts`); now they have one object with a `kind`.
A row that cannot be read stays unreadable, with all that it held, so that it is set aside when its turn comes.
"""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from bot.store.migrations.messages_of_0004 import message_text, state_text

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_BATCH = 1_000
"""Rows that are in memory at a time."""


def upgrade() -> None:
    connection = op.get_bind()
    sqlite = connection.dialect.name == "sqlite"
    if not sqlite:
        # A process of the version before that locks a thread and waits for its notices would deadlock with us later,
        # when much is done.
        op.execute("LOCK TABLE threads, notices IN ACCESS EXCLUSIVE MODE")
    op.add_column("notices", sa.Column("message", sa.Text(), nullable=True))
    _translate_notices(connection)
    _translate_threads(connection)
    if sqlite:
        _make_notices_anew()
    else:
        _alter_notices()


def downgrade() -> None:
    raise NotImplementedError("Restore the backup from before.")


# -- rows ---------------------------------------------------------------------------------------------------------


def _translate_notices(connection: sa.Connection) -> None:
    update = sa.text("UPDATE notices SET message = :message WHERE id = :id")
    for rows in _batches(connection, "notices", "kind, what, facts", first=-1):
        values = [{"id": id_, "message": message_text(kind, what, facts)} for id_, kind, what, facts in rows]
        connection.execute(update, values)


def _translate_threads(connection: sa.Connection) -> None:
    update = sa.text("UPDATE threads SET known = :known WHERE id = :id")
    for rows in _batches(connection, "threads", "known", first=""):
        connection.execute(update, [{"id": id_, "known": state_text(known)} for id_, known in rows])


def _batches(connection: sa.Connection, table: str, columns: str, *, first: int | str) -> Iterator[list[Any]]:
    """Yields all rows of a table, each with its id before the columns, some at a time."""
    select = sa.text(f"SELECT id, {columns} FROM {table} WHERE id > :last ORDER BY id LIMIT :limit")  # noqa: S608 - names from above
    last = first
    while rows := connection.execute(select, {"last": last, "limit": _BATCH}).fetchall():
        last = rows[-1][0]
        yield list(rows)


# -- the table ----------------------------------------------------------------------------------------------------

_KEPT = (
    "id, key, thread_id, message, person_id, created_at, state, revision, attempts, uncertain, posted_ts, problem, "
    "due_at, claimed_by, claimed_until"
)
_DELIVERY = "CASE kind WHEN 'mark' THEN 'reaction' WHEN 'tell' THEN 'ephemeral' ELSE kind END"
_DELIVERY_CHECK = "delivery IN ('card', 'post', 'reaction', 'ephemeral')"


def _alter_notices() -> None:
    op.drop_constraint("ck_notices_kind", "notices", type_="check")
    op.execute(f"UPDATE notices SET kind = {_DELIVERY} WHERE kind IN ('mark', 'tell')")  # noqa: S608 - names from above
    op.alter_column("notices", "kind", new_column_name="delivery")
    op.alter_column("notices", "plain", new_column_name="without_blocks")
    op.create_check_constraint("ck_notices_delivery", "notices", _DELIVERY_CHECK)
    op.alter_column("notices", "message", nullable=False)
    op.drop_column("notices", "what")
    op.drop_column("notices", "facts")


def _make_notices_anew() -> None:
    """SQLite cannot change a check, nor make a column mandatory that has no default."""
    op.rename_table("notices", "notices_before")
    for index in ("due_at", "thread_id", "person_id"):
        op.drop_index(f"ix_notices_{index}")
    op.create_table("notices", *_columns(), *_constraints(), sqlite_autoincrement=True)
    op.execute(
        f"INSERT INTO notices ({_KEPT}, delivery, without_blocks) "  # noqa: S608 - names from above
        f"SELECT {_KEPT}, {_DELIVERY}, plain FROM notices_before"
    )
    # Ids are never used again, not even those of rows that were deleted.
    op.execute("DELETE FROM sqlite_sequence WHERE name = 'notices'")
    op.execute("INSERT INTO sqlite_sequence SELECT 'notices', seq FROM sqlite_sequence WHERE name = 'notices_before'")
    op.drop_table("notices_before")
    due, to_person = sa.text("due_at IS NOT NULL"), sa.text("person_id IS NOT NULL")
    op.create_index("ix_notices_due_at", "notices", ["due_at"], sqlite_where=due)
    op.create_index("ix_notices_thread_id", "notices", ["thread_id", "due_at"])
    op.create_index("ix_notices_person_id", "notices", ["person_id", "id"], sqlite_where=to_person)


def _columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("delivery", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("uncertain", sa.Boolean(), nullable=False),
        sa.Column("without_blocks", sa.Boolean(), nullable=False),
        sa.Column("posted_ts", sa.Text(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_until", sa.Double(), nullable=True),
    ]


def _constraints() -> list[sa.Constraint]:
    return [
        sa.CheckConstraint("(claimed_by IS NOT NULL) = (state = 'sending')", name="ck_notices_sending_is_claimed"),
        sa.CheckConstraint("(due_at IS NOT NULL) = (state IN ('waiting', 'sending'))", name="ck_notices_open_is_due"),
        sa.CheckConstraint(_DELIVERY_CHECK, name="ck_notices_delivery"),
        sa.CheckConstraint("state IN ('waiting', 'sending', 'done', 'given_up')", name="ck_notices_state"),
        sa.CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name="ck_notices_claim"),
        sa.CheckConstraint("attempts >= 0", name="ck_notices_attempts"),
        sa.CheckConstraint("claimed_until BETWEEN 0 AND 100000000000", name="ck_notices_claimed_until"),
        sa.CheckConstraint("created_at BETWEEN 0 AND 100000000000", name="ck_notices_created_at"),
        sa.CheckConstraint("due_at BETWEEN 0 AND 100000000000", name="ck_notices_due_at"),
        sa.CheckConstraint("revision >= 0", name="ck_notices_revision"),
        sa.ForeignKeyConstraint(["thread_id"], ["threads.id"], name="fk_notices_thread_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_notices"),
        sa.UniqueConstraint("key", name="uq_notices_key"),
    ]
