"""Who has had a private answer to a message does not get it from another process again."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("message_versions", sa.Column("answered", sa.Text(), nullable=True))


def downgrade() -> None:
    raise NotImplementedError("Restore the backup from before.")
