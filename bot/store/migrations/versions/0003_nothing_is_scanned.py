"""What is looked for by person is found by index; notices say in a column of their own for whom they are.

On a big PostgreSQL database, writers wait while the indexes are made: seconds for a million finished jobs.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_KEY = '"person":"'
"""How it stands in `facts`; within a text, the quotes would be escaped."""
_FILL = {
    "sqlite": f"""
        UPDATE notices SET person_id = substr(
            facts, instr(facts, '{_KEY}') + 10, instr(substr(facts, instr(facts, '{_KEY}') + 10), '"') - 1
        ) WHERE instr(facts, '{_KEY}') > 0""",  # noqa: S608 - the text from above
    "postgresql": f"""
        UPDATE notices SET person_id = substring(facts FROM '{_KEY}([^"]*)"')
        WHERE position('{_KEY}' IN facts) > 0""",  # noqa: S608 - the same
}


def upgrade() -> None:
    op.add_column("notices", sa.Column("person_id", sa.Text(), nullable=True))
    op.execute(_FILL[op.get_context().dialect.name].replace(":", "\\:"))
    op.execute("UPDATE notices SET person_id = NULL WHERE person_id = ''")
    op.create_index("ix_threads_asker_id", "threads", ["asker_id", "created_at"])
    op.create_index("ix_requests_person_id", "requests", ["person_id", "recorded_at"])
    op.create_index("ix_early_replies_person_id", "early_replies", ["person_id"])
    op.create_index(
        "ix_notices_person_id",
        "notices",
        ["person_id", "id"],
        postgresql_where=sa.text("person_id IS NOT NULL"),
        sqlite_where=sa.text("person_id IS NOT NULL"),
    )


def downgrade() -> None:
    for table, column in (
        ("notices", "person_id"),
        ("early_replies", "person_id"),
        ("requests", "person_id"),
        ("threads", "asker_id"),
    ):
        op.drop_index(f"ix_{table}_{column}", table_name=table)
    op.drop_column("notices", "person_id")
