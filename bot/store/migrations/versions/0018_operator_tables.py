"""The tables for operators: when each kind of event last happened, and faults of the set-up."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates the tables. Processes of the earlier version continue without them."""
    op.create_table(
        "last_times",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.CheckConstraint("at BETWEEN 0 AND 100000000000", name=op.f("ck_last_times_at")),
        sa.PrimaryKeyConstraint("kind", name=op.f("pk_last_times")),
    )
    op.create_table(
        "faults",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("parent", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("found_at", sa.Double(), nullable=False),
        sa.Column("cleared_at", sa.Double(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_until", sa.Double(), nullable=True),
        sa.CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name=op.f("ck_faults_claim")),
        sa.CheckConstraint("claimed_by IS NULL OR due_at IS NOT NULL", name=op.f("ck_faults_claimed_is_due")),
        sa.CheckConstraint("attempts >= 0", name=op.f("ck_faults_attempts")),
        sa.CheckConstraint("found_at BETWEEN 0 AND 100000000000", name=op.f("ck_faults_found_at")),
        sa.CheckConstraint("cleared_at BETWEEN 0 AND 100000000000", name=op.f("ck_faults_cleared_at")),
        sa.CheckConstraint("due_at BETWEEN 0 AND 100000000000", name=op.f("ck_faults_due_at")),
        sa.CheckConstraint("claimed_until BETWEEN 0 AND 100000000000", name=op.f("ck_faults_claimed_until")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_faults")),
    )
    op.create_index(op.f("ix_faults_parent"), "faults", ["parent"])
    due = sa.text("due_at IS NOT NULL")
    op.create_index(op.f("ix_faults_due_at"), "faults", ["due_at"], postgresql_where=due, sqlite_where=due)
