"""Requests are claimed round robin: by person, by thread, and in the order of each thread."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_INDEXES = {
    "ix_requests_to_be_prepared": (["person_id", "thread_id", "due_at"], "state IN ('received', 'preparing')"),
    "ix_requests_to_be_sent": (["person_id", "thread_id", "due_at"], "state IN ('waiting', 'sending')"),
    "ix_requests_in_order": (["thread_id", "kind", "written_at", "recorded_at", "id"], "due_at IS NOT NULL"),
    "ix_requests_under_way": (["thread_id", "claimed_until"], "claimed_until IS NOT NULL"),
}


def upgrade() -> None:
    for name, (columns, rows) in _INDEXES.items():
        op.create_index(name, "requests", columns, sqlite_where=sa.text(rows), postgresql_where=sa.text(rows))


def downgrade() -> None:
    raise NotImplementedError("Restore the backup from before.")
