"""Under which ids channels are known, once Slack changed them."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_LAST_TIME = 100_000_000_000


def upgrade() -> None:
    op.create_table(
        "channel_ids",
        sa.Column("channel_id", sa.Text(), nullable=False),
        sa.Column("known_as", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.Column("recorded_at", sa.Double(), nullable=False),
        sa.CheckConstraint(f"changed_at BETWEEN 0 AND {_LAST_TIME}", name="changed_at"),
        sa.CheckConstraint(f"recorded_at BETWEEN 0 AND {_LAST_TIME}", name="recorded_at"),
        sa.PrimaryKeyConstraint("channel_id", name="pk_channel_ids"),
    )
    op.create_index("ix_channel_ids_known_as", "channel_ids", ["known_as", "changed_at"])
    op.create_index("ix_channel_ids_recorded_at", "channel_ids", ["recorded_at"])


def downgrade() -> None:
    raise NotImplementedError("Restore the backup from before.")
