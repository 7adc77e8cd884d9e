"""The calls of the last minute, because Slack's limits apply to any minute."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0024"
branch_labels = None
depends_on = None
compatible_with = "0018"


def upgrade() -> None:
    """Adds a column that an older program leaves as it is."""
    op.add_column("slack_calls", sa.Column("calls", sa.Text(), server_default="[]", nullable=False))
