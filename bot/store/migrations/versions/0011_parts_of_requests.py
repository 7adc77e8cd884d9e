"""What goes along with a request is kept part by part, and files are uploaded one by one."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_LAST_TIME = 100_000_000_000


def upgrade() -> None:
    op.add_column("requests", sa.Column("fetched", sa.Text(), nullable=True))
    op.create_table(
        "request_files",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("failing_since", sa.Double(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_until", sa.Double(), nullable=True),
        sa.CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name="claim"),
        sa.CheckConstraint("claimed_by IS NULL OR due_at IS NOT NULL", name="claimed_is_due"),
        sa.CheckConstraint("attempts >= 0", name="attempts"),
        *(
            sa.CheckConstraint(f"{column} BETWEEN 0 AND {_LAST_TIME}", name=column)
            for column in ("failing_since", "due_at", "claimed_until")
        ),
        sa.PrimaryKeyConstraint("request_id", "position", name="pk_request_files"),
        sa.ForeignKeyConstraint(
            ["request_id"], ["requests.id"], ondelete="CASCADE", name="fk_request_files_request_id"
        ),
    )
    due = sa.text("due_at IS NOT NULL")
    op.create_index("ix_request_files_due_at", "request_files", ["due_at"], sqlite_where=due, postgresql_where=due)


def downgrade() -> None:
    raise NotImplementedError("Restore the backup from before.")
