"""All processes share what Slack allows; what is due is found by what it is called by."""

import sqlalchemy as sa
from alembic import op

from bot.store.schema.column_types import KeyText

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "slack_calls",
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("channel_id", KeyText, nullable=False),
        sa.Column("tat", sa.Double(), nullable=False),
        sa.CheckConstraint("tat BETWEEN 0 AND 100000000000", name=op.f("ck_slack_calls_tat")),
        sa.PrimaryKeyConstraint("method", "channel_id", name=op.f("pk_slack_calls")),
    )
    op.create_index(op.f("ix_slack_calls_tat"), "slack_calls", ["tat"])
    op.add_column("notices", sa.Column("only_progress", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index(
        op.f("ix_notices_delivery"),
        "notices",
        ["delivery", "due_at"],
        postgresql_where=sa.text("due_at IS NOT NULL"),
        sqlite_where=sa.text("due_at IS NOT NULL"),
    )


def downgrade() -> None:
    raise NotImplementedError("Restore the backup from before.")
