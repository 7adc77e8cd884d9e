"""Requests know who the job API is told asked for them."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("requests", sa.Column("requester", sa.Text(), nullable=True))


def downgrade() -> None:
    raise NotImplementedError("Restore the backup from before.")
