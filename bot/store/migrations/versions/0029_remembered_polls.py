"""What was seen of each job, so that the first polls after a restart cost as little as any others."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None
compatible_with = "0018"


def upgrade() -> None:
    """Adds a column. Processes of the earlier version continue without it."""
    op.add_column("polls", sa.Column("seen", sa.Text(), nullable=True))
