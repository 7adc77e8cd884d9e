"""The schema says with which programs it is compatible, so that the version before can go on with it."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None
compatible_with = "0018"


def upgrade() -> None:
    """Adds the column, which `bot.store.schema.migration` fills."""
    op.add_column("pagehand_schema", sa.Column("compatible_with", sa.Text(), nullable=True))
