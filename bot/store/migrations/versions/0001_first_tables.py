"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "threads",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("team_id", sa.Text(), nullable=False),
        sa.Column("channel_id", sa.Text(), nullable=False),
        sa.Column("ts", sa.Text(), nullable=True),
        sa.Column("asker_id", sa.Text(), nullable=False),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("touched_at", sa.Double(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("known", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.CheckConstraint("created_at BETWEEN 0 AND 100000000000", name="ck_threads_created_at"),
        sa.CheckConstraint("revision >= 0", name="ck_threads_revision"),
        sa.CheckConstraint("touched_at BETWEEN 0 AND 100000000000", name="ck_threads_touched_at"),
        sa.PrimaryKeyConstraint("id", name="pk_threads"),
        sa.UniqueConstraint("channel_id", "ts", name="uq_threads_channel_id"),
    )
    op.create_index("ix_threads_touched_at", "threads", ["touched_at"], unique=False)
    op.create_table(
        "watches",
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_until", sa.Double(), nullable=True),
        sa.CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name="ck_watches_claim"),
        sa.CheckConstraint("claimed_by IS NULL OR due_at IS NOT NULL", name="ck_watches_claimed_is_watched"),
        sa.CheckConstraint("claimed_until BETWEEN 0 AND 100000000000", name="ck_watches_claimed_until"),
        sa.CheckConstraint("due_at BETWEEN 0 AND 100000000000", name="ck_watches_due_at"),
        sa.ForeignKeyConstraint(["thread_id"], ["threads.id"], name="fk_watches_thread_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("thread_id", name="pk_watches"),
    )
    op.create_index(
        "ix_watches_due_at",
        "watches",
        ["due_at"],
        unique=False,
        postgresql_where=sa.text("due_at IS NOT NULL"),
        sqlite_where=sa.text("due_at IS NOT NULL"),
    )
    op.create_table(
        "requests",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("source_key", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("written_at", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("recorded_at", sa.Double(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("first_tried_at", sa.Double(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_until", sa.Double(), nullable=True),
        sa.CheckConstraint("(claimed_by IS NOT NULL) = (state = 'sending')", name="ck_requests_sending_is_claimed"),
        sa.CheckConstraint("(due_at IS NOT NULL) = (state IN ('waiting', 'sending'))", name="ck_requests_open_is_due"),
        sa.CheckConstraint("kind IN ('start', 'follow_up')", name="ck_requests_kind"),
        sa.CheckConstraint("state IN ('waiting', 'sending', 'taken', 'refused', 'unsure')", name="ck_requests_state"),
        sa.CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name="ck_requests_claim"),
        sa.CheckConstraint("attempts >= 0", name="ck_requests_attempts"),
        sa.CheckConstraint("claimed_until BETWEEN 0 AND 100000000000", name="ck_requests_claimed_until"),
        sa.CheckConstraint("due_at BETWEEN 0 AND 100000000000", name="ck_requests_due_at"),
        sa.CheckConstraint("first_tried_at BETWEEN 0 AND 100000000000", name="ck_requests_first_tried_at"),
        sa.CheckConstraint("recorded_at BETWEEN 0 AND 100000000000", name="ck_requests_recorded_at"),
        sa.ForeignKeyConstraint(
            ["thread_id"],
            ["threads.id"],
            name="fk_requests_thread_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_requests"),
        sa.UniqueConstraint("source_key", name="uq_requests_source_key"),
    )
    op.create_index(
        "ix_requests_due_at",
        "requests",
        ["due_at"],
        unique=False,
        postgresql_where=sa.text("due_at IS NOT NULL"),
        sqlite_where=sa.text("due_at IS NOT NULL"),
    )
    op.create_index("ix_requests_thread_id", "requests", ["thread_id", "due_at"], unique=False)
    op.create_table(
        "notices",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("uncertain", sa.Boolean(), nullable=False),
        sa.Column("plain", sa.Boolean(), nullable=False),
        sa.Column("posted_ts", sa.Text(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_until", sa.Double(), nullable=True),
        sa.CheckConstraint("(claimed_by IS NOT NULL) = (state = 'sending')", name="ck_notices_sending_is_claimed"),
        sa.CheckConstraint("(due_at IS NOT NULL) = (state IN ('waiting', 'sending'))", name="ck_notices_open_is_due"),
        sa.CheckConstraint("kind IN ('card', 'post', 'mark', 'tell')", name="ck_notices_kind"),
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
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_notices_due_at",
        "notices",
        ["due_at"],
        unique=False,
        postgresql_where=sa.text("due_at IS NOT NULL"),
        sqlite_where=sa.text("due_at IS NOT NULL"),
    )
    op.create_index("ix_notices_thread_id", "notices", ["thread_id", "due_at"], unique=False)
    op.create_table(
        "early_replies",
        sa.Column("channel_id", sa.Text(), nullable=False),
        sa.Column("message_ts", sa.Text(), nullable=False),
        sa.Column("thread_ts", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("team_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("channel_id", "message_ts", name="pk_early_replies"),
    )


def downgrade() -> None:
    for table in ("early_replies", "notices", "requests", "watches", "threads"):
        op.drop_table(table)
