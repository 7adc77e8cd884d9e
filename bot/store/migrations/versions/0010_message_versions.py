"""Which version of a message was seen last is kept for a while, since an older one can come later."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_LAST_TIME = 100_000_000_000


def upgrade() -> None:
    op.create_table(
        "message_versions",
        sa.Column("channel_id", sa.Text(), nullable=False),
        sa.Column("message_ts", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("edited_at", sa.Text(), nullable=False),
        sa.Column("noted_at", sa.Double(), nullable=False),
        sa.CheckConstraint(f"noted_at BETWEEN 0 AND {_LAST_TIME}", name="noted_at"),
        sa.PrimaryKeyConstraint("channel_id", "message_ts", name="pk_message_versions"),
    )
    op.create_index("ix_message_versions_person_id", "message_versions", ["person_id"])
    op.create_index("ix_message_versions_noted_at", "message_versions", ["noted_at"])


def downgrade() -> None:
    raise NotImplementedError("Restore the backup from before.")
