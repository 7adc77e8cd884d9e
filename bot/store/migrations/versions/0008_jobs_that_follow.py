"""Which job comes after which in a Slack thread, and how each request came."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("threads", sa.Column("root_ts", sa.Text(), nullable=False, server_default=sa.text("''")))
    op.execute("UPDATE threads SET root_ts = ts WHERE ts IS NOT NULL AND (card_ts IS NULL OR card_ts <> ts)")
    op.add_column("threads", sa.Column("follows", sa.Text(), nullable=False, server_default=sa.text("''")))
    op.add_column("requests", sa.Column("way_in", sa.Text(), nullable=False, server_default="reply"))
    op.execute("UPDATE requests SET way_in = 'button' WHERE kind NOT IN ('start', 'follow_up')")
    for way_in in ("command", "modal", "shortcut", "mention", "direct_message", "retry", "switch"):
        asked_so = sa.text(
            "UPDATE requests SET way_in = :way_in WHERE kind = 'start' AND thread_id IN "
            "(SELECT id FROM threads WHERE options LIKE :options)"
        ).bindparams(way_in=way_in, options=f'%"way_in":"{way_in}"%')
        op.execute(asked_so)
    followed = sa.text("follows <> ''")
    op.create_index("ix_threads_follows", "threads", ["follows"], sqlite_where=followed, postgresql_where=followed)


def downgrade() -> None:
    raise NotImplementedError("Restore the backup from before.")
