"""Channels in which posts fail: a job is not created there before its card is posted."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0020"
branch_labels = None
depends_on = None
compatible_with = "0018"


def upgrade() -> None:
    """Adds a column that an older program leaves as it is."""
    op.add_column("slack_calls", sa.Column("failing", sa.Boolean(), server_default=sa.false(), nullable=False))
