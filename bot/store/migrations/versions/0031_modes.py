"""The mode in which a request is sent."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None
compatible_with = "0018"


def upgrade() -> None:
    """Adds a column. Processes of the earlier version continue without it, in the mode that they know."""
    op.add_column("requests", sa.Column("mode", sa.Text(), nullable=True))
