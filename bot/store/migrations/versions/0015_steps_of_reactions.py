"""A reaction is put on and taken off by separate calls: what is done of that is not done again."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("notices", sa.Column("reactions_shown", sa.Text(), nullable=True))
    op.add_column("notices", sa.Column("reaction_added", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    raise NotImplementedError("Restore the backup from before.")
