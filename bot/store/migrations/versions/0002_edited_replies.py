"""Replies that are edited or deleted: requests know of it, and may have arrived with what they said before."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_STATES = ("waiting", "sending", "taken", "refused", "unsure")
_KEPT = {
    "requests": (
        "id, thread_id, kind, source_key, person_id, text, written_at, recorded_at, state, attempts, first_tried_at, "
        "problem, due_at, claimed_by, claimed_until"
    ),
    "early_replies": "channel_id, message_ts, thread_ts, person_id, team_id, text",
}
_NEW = {
    "requests": {
        "edited_at": "''",
        # Of what was tried before this was written down it is not known.
        "uncertain": "attempts > 0 AND state IN ('waiting', 'sending', 'unsure', 'refused')",
    },
    "early_replies": {"extras": "''", "edited_at": "''", "withdrawn": "1 = 0"},
}


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _make_anew()
    else:
        _alter()


def _make_anew() -> None:
    """SQLite cannot change a check, nor add a column that has no default."""
    for name in _KEPT:
        op.rename_table(name, f"{name}_before")
    op.drop_index("ix_requests_due_at")
    op.drop_index("ix_requests_thread_id")
    _create_requests()
    _create_early_replies()
    for name, kept in _KEPT.items():
        new = _NEW[name]
        columns, values = ", ".join((kept, *new)), ", ".join((kept, *new.values()))
        op.execute(f"INSERT INTO {name} ({columns}) SELECT {values} FROM {name}_before")  # noqa: S608 - names from above
        op.drop_table(f"{name}_before")


def _alter() -> None:
    op.drop_constraint("ck_requests_state", "requests", type_="check")
    op.create_check_constraint("ck_requests_state", "requests", _one_of("withdrawn"))
    op.add_column("requests", sa.Column("newest", sa.Text(), nullable=True))
    flags = {"uncertain", "withdrawn"}
    for table, columns in _NEW.items():
        for name, value in columns.items():
            op.add_column(table, sa.Column(name, sa.Boolean() if name in flags else sa.Text(), nullable=True))
            op.execute(f"UPDATE {table} SET {name} = {value}")  # noqa: S608 - names from above
            op.alter_column(table, name, nullable=False)


def _one_of(*more: str) -> str:
    listed = ", ".join(f"'{state}'" for state in (*_STATES, *more))
    return f"state IN ({listed})"


def _create_requests() -> None:
    op.create_table("requests", *_columns_of_requests(), *_constraints_of_requests())
    due = sa.text("due_at IS NOT NULL")
    op.create_index("ix_requests_due_at", "requests", ["due_at"], unique=False, sqlite_where=due)
    op.create_index("ix_requests_thread_id", "requests", ["thread_id", "due_at"], unique=False)


def _columns_of_requests() -> list[sa.Column[Any]]:
    return [
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("source_key", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("written_at", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.Double(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("first_tried_at", sa.Double(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.Column("edited_at", sa.Text(), nullable=False),
        sa.Column("newest", sa.Text(), nullable=True),
        sa.Column("uncertain", sa.Boolean(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_until", sa.Double(), nullable=True),
    ]


def _constraints_of_requests() -> list[sa.Constraint]:
    return [
        sa.CheckConstraint("(claimed_by IS NOT NULL) = (state = 'sending')", name="ck_requests_sending_is_claimed"),
        sa.CheckConstraint("(due_at IS NOT NULL) = (state IN ('waiting', 'sending'))", name="ck_requests_open_is_due"),
        sa.CheckConstraint("kind IN ('start', 'follow_up')", name="ck_requests_kind"),
        sa.CheckConstraint(_one_of("withdrawn"), name="ck_requests_state"),
        sa.CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name="ck_requests_claim"),
        sa.CheckConstraint("attempts >= 0", name="ck_requests_attempts"),
        sa.CheckConstraint("claimed_until BETWEEN 0 AND 100000000000", name="ck_requests_claimed_until"),
        sa.CheckConstraint("due_at BETWEEN 0 AND 100000000000", name="ck_requests_due_at"),
        sa.CheckConstraint("first_tried_at BETWEEN 0 AND 100000000000", name="ck_requests_first_tried_at"),
        sa.CheckConstraint("recorded_at BETWEEN 0 AND 100000000000", name="ck_requests_recorded_at"),
        sa.ForeignKeyConstraint(["thread_id"], ["threads.id"], name="fk_requests_thread_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_requests"),
        sa.UniqueConstraint("source_key", name="uq_requests_source_key"),
    ]


def _create_early_replies() -> None:
    op.create_table(
        "early_replies",
        sa.Column("channel_id", sa.Text(), nullable=False),
        sa.Column("message_ts", sa.Text(), nullable=False),
        sa.Column("thread_ts", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("team_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("extras", sa.Text(), nullable=False),
        sa.Column("edited_at", sa.Text(), nullable=False),
        sa.Column("withdrawn", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("channel_id", "message_ts", name="pk_early_replies"),
    )


def downgrade() -> None:
    raise NotImplementedError("Restore the backup from before.")
