"""What counts towards the hourly limit has a table of its own."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_LAST_TIME = 100_000_000_000


def upgrade() -> None:
    op.create_table(
        "counted_requests",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.CheckConstraint(f"at BETWEEN 0 AND {_LAST_TIME}", name="at"),
        sa.PrimaryKeyConstraint("request_id", name="pk_counted_requests"),
    )
    op.create_index("ix_counted_requests_person_id", "counted_requests", ["person_id", "at"])
    op.create_index("ix_counted_requests_at", "counted_requests", ["at"])


def downgrade() -> None:
    raise NotImplementedError("Restore the backup from before.")
