"""The tables about times in which nobody listened to Slack, which is then read again."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None
compatible_with = "0018"

_TIMES = {"listening": ("since", "until"), "gaps": ("since", "until", "newest", "due_at", "claimed_until")}


def upgrade() -> None:
    """Creates the tables. Processes of the earlier version continue without them."""
    op.create_table(
        "listening",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("until", sa.Double(), nullable=False),
        *_time_checks("listening"),
        sa.PrimaryKeyConstraint("owner", name=op.f("pk_listening")),
    )
    op.create_table(
        "gaps",
        sa.Column("channel_id", sa.Text(), nullable=False),
        sa.Column("thread_ts", sa.Text(), nullable=False),
        sa.Column("since", sa.Double(), nullable=False),
        sa.Column("until", sa.Double(), nullable=False),
        sa.Column("asks", sa.Boolean(), nullable=False),
        sa.Column("first", sa.Boolean(), nullable=False),
        sa.Column("newest", sa.Double(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_until", sa.Double(), nullable=True),
        sa.CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name=op.f("ck_gaps_claim")),
        sa.CheckConstraint("attempts >= 0", name=op.f("ck_gaps_attempts")),
        *_time_checks("gaps"),
        sa.PrimaryKeyConstraint("channel_id", "thread_ts", name=op.f("pk_gaps")),
    )
    due = sa.text("due_at IS NOT NULL")
    op.create_index(op.f("ix_gaps_due_at"), "gaps", ["due_at"], postgresql_where=due, sqlite_where=due)
    op.create_table(
        "stops_seen",
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["thread_id"], ["threads.id"], name=op.f("fk_stops_seen_thread_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("thread_id", "person_id", name=op.f("pk_stops_seen")),
    )
    op.create_index(op.f("ix_stops_seen_person_id"), "stops_seen", ["person_id"])


def _time_checks(table: str) -> list[sa.CheckConstraint]:
    return [
        sa.CheckConstraint(f"{column} BETWEEN 0 AND 100000000000", name=op.f(f"ck_{table}_{column}"))
        for column in _TIMES[table]
    ]
