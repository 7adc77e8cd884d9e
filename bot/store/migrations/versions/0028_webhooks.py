"""What a webhook of a code host needs: finding pull requests by their link, and when each may be read next."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None
compatible_with = "0018"


def upgrade() -> None:
    """Adds a column and an index. Processes of the earlier version continue without them."""
    op.add_column("pull_requests", sa.Column("not_before", sa.Double(), nullable=True))
    due = sa.text("due_at IS NOT NULL")
    op.create_index(
        op.f("ix_pull_requests_link"),
        "pull_requests",
        ["link"],
        postgresql_using="hash",
        postgresql_where=due,
        sqlite_where=due,
    )
