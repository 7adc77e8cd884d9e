"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_OPEN = sa.text("due_at IS NOT NULL")


def upgrade() -> None:
    _create_threads()
    _create_watches()
    _create_requests()
    _create_notices()
    _create_early_replies()


def downgrade() -> None:
    for table in ("early_replies", "notices", "requests", "watches", "threads"):
        op.drop_table(table)


def _create_threads() -> None:
    op.create_table(
        "threads",
        _text("id"),
        _text("team_id"),
        _text("channel_id"),
        _text("ts", nullable=True),
        _text("asker_id"),
        _text("prompt"),
        _text("project_id"),
        _time("created_at"),
        _time("touched_at"),
        _text("job_id", nullable=True),
        _text("known"),
        _number("revision"),
        _is_time("threads", "created_at"),
        _check("threads", "revision", "revision >= 0"),
        _is_time("threads", "touched_at"),
        sa.PrimaryKeyConstraint("id", name="pk_threads"),
        sa.UniqueConstraint("channel_id", "ts", name="uq_threads_channel_id"),
    )
    op.create_index("ix_threads_touched_at", "threads", ["touched_at"])


def _create_watches() -> None:
    op.create_table(
        "watches",
        _text("thread_id"),
        _time("due_at", nullable=True),
        *_claim(),
        _claim_is_whole("watches"),
        _check("watches", "claimed_is_watched", "claimed_by IS NULL OR due_at IS NOT NULL"),
        _is_time("watches", "claimed_until"),
        _is_time("watches", "due_at"),
        _of_thread("watches"),
        sa.PrimaryKeyConstraint("thread_id", name="pk_watches"),
    )
    _index_what_is_open("watches")


def _create_requests() -> None:
    op.create_table(
        "requests",
        _text("id"),
        _text("thread_id"),
        _text("kind"),
        _text("source_key"),
        _text("person_id"),
        _text("text"),
        sa.Column("written_at", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        _time("recorded_at"),
        _text("state"),
        _number("attempts"),
        _time("first_tried_at", nullable=True),
        _text("problem"),
        _time("due_at", nullable=True),
        *_claim(),
        *_open_is_due("requests"),
        _one_of("requests", "kind", "start", "follow_up"),
        _one_of("requests", "state", "waiting", "sending", "taken", "refused", "unsure"),
        _claim_is_whole("requests"),
        _check("requests", "attempts", "attempts >= 0"),
        _is_time("requests", "claimed_until"),
        _is_time("requests", "due_at"),
        _is_time("requests", "first_tried_at"),
        _is_time("requests", "recorded_at"),
        _of_thread("requests"),
        sa.PrimaryKeyConstraint("id", name="pk_requests"),
        sa.UniqueConstraint("source_key", name="uq_requests_source_key"),
    )
    _index_what_is_open("requests")
    op.create_index("ix_requests_thread_id", "requests", ["thread_id", "due_at"])


def _create_notices() -> None:
    op.create_table(
        "notices",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        _text("key"),
        _text("thread_id"),
        _text("kind"),
        _text("what"),
        _text("facts"),
        _time("created_at"),
        _text("state"),
        _number("revision"),
        _number("attempts"),
        sa.Column("uncertain", sa.Boolean(), nullable=False),
        sa.Column("plain", sa.Boolean(), nullable=False),
        _text("posted_ts", nullable=True),
        _text("problem"),
        _time("due_at", nullable=True),
        *_claim(),
        *_open_is_due("notices"),
        _one_of("notices", "kind", "card", "post", "mark", "tell"),
        _one_of("notices", "state", "waiting", "sending", "done", "given_up"),
        _claim_is_whole("notices"),
        _check("notices", "attempts", "attempts >= 0"),
        _is_time("notices", "claimed_until"),
        _is_time("notices", "created_at"),
        _is_time("notices", "due_at"),
        _check("notices", "revision", "revision >= 0"),
        _of_thread("notices"),
        sa.PrimaryKeyConstraint("id", name="pk_notices"),
        sa.UniqueConstraint("key", name="uq_notices_key"),
        sqlite_autoincrement=True,
    )
    _index_what_is_open("notices")
    op.create_index("ix_notices_thread_id", "notices", ["thread_id", "due_at"])


def _create_early_replies() -> None:
    names = ("channel_id", "message_ts", "thread_ts", "person_id", "team_id", "text")
    key = sa.PrimaryKeyConstraint("channel_id", "message_ts", name="pk_early_replies")
    op.create_table("early_replies", *(_text(name) for name in names), key)


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=nullable)


def _time(name: str, *, nullable: bool = False) -> sa.Column[float]:
    return sa.Column(name, sa.Double(), nullable=nullable)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=False)


def _claim() -> tuple[sa.Column[str], sa.Column[float]]:
    return _text("claimed_by", nullable=True), _time("claimed_until", nullable=True)


def _check(table: str, name: str, condition: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(condition, name=f"ck_{table}_{name}")


def _is_time(table: str, column: str) -> sa.CheckConstraint:
    return _check(table, column, f"{column} BETWEEN 0 AND 100000000000")


def _one_of(table: str, column: str, *values: str) -> sa.CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return _check(table, column, f"{column} IN ({listed})")


def _claim_is_whole(table: str) -> sa.CheckConstraint:
    return _check(table, "claim", "(claimed_by IS NULL) = (claimed_until IS NULL)")


def _open_is_due(table: str) -> tuple[sa.CheckConstraint, sa.CheckConstraint]:
    return (
        _check(table, "sending_is_claimed", "(claimed_by IS NOT NULL) = (state = 'sending')"),
        _check(table, "open_is_due", "(due_at IS NOT NULL) = (state IN ('waiting', 'sending'))"),
    )


def _of_thread(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["thread_id"], ["threads.id"], name=f"fk_{table}_thread_id", ondelete="CASCADE")


def _index_what_is_open(table: str) -> None:
    op.create_index(f"ix_{table}_due_at", table, ["due_at"], postgresql_where=_OPEN, sqlite_where=_OPEN)
