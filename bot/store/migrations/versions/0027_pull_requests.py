"""The pull requests of jobs, which are followed until they are merged or closed."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None
compatible_with = "0018"

_ADOPT = """
INSERT INTO pull_requests (thread_id, link, followed, due_at)
SELECT id, link, '{{"adopted": true}}', {now} + 3600.0 * (row_number() OVER (ORDER BY id)) / (count(*) OVER ())
FROM (SELECT id, {link} AS link FROM threads WHERE job_id IS NOT NULL) AS jobs
WHERE link IS NOT NULL
"""
_NOW = {"sqlite": "CAST(strftime('%s', 'now') AS REAL)", "postgresql": "extract(epoch FROM now())"}
_LINK = {
    "sqlite": "CASE WHEN json_valid(state) THEN json_extract(state, '$.job.pr_link') END",
    "postgresql": """substring(state FROM '"pr_link":"([^"\\\\]+)"')""",  # a cast would fail at a damaged row
}


def upgrade() -> None:
    """Creates the table, and adopts the links of earlier jobs, spread over an hour. Processes of the earlier version
    continue without it.
    """
    times = [
        sa.CheckConstraint(f"{column} BETWEEN 0 AND 100000000000", name=op.f(f"ck_pull_requests_{column}"))
        for column in ("due_at", "claimed_until")
    ]
    op.create_table(
        "pull_requests",
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("link", sa.Text(), nullable=False),
        sa.Column("followed", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_until", sa.Double(), nullable=True),
        sa.CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name=op.f("ck_pull_requests_claim")),
        sa.CheckConstraint("claimed_by IS NULL OR due_at IS NOT NULL", name=op.f("ck_pull_requests_claimed_is_due")),
        *times,
        sa.ForeignKeyConstraint(
            ["thread_id"], ["threads.id"], name=op.f("fk_pull_requests_thread_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("thread_id", name=op.f("pk_pull_requests")),
    )
    due = sa.text("due_at IS NOT NULL")
    op.create_index(
        op.f("ix_pull_requests_due_at"), "pull_requests", ["due_at"], postgresql_where=due, sqlite_where=due
    )
    dialect = op.get_bind().dialect.name
    op.execute(sa.text(_ADOPT.format(now=_NOW[dialect], link=_LINK[dialect])))
