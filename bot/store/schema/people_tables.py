"""The tables about people: audit, limits, drafts, preferences and Homes."""

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, Double, Index, Integer, Table, Text

from bot.store.schema.column_types import CleanText, KeyText, metadata, time_check

audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("at", Double, nullable=False),
    Column("action", Text, nullable=False),
    Column("person_id", CleanText, nullable=False),
    Column("team_id", CleanText, nullable=False),
    Column("channel_id", CleanText, nullable=False),
    Column("thread_id", CleanText, nullable=False),
    Column("job_id", CleanText, nullable=False),
    Column("project", CleanText, nullable=False),
    Column("way_in", CleanText, nullable=False),
    Column("reason", CleanText, nullable=False),
    time_check("at"),
    sqlite_autoincrement=True,
)
"""Who did what, and when (AuditEntry); never what they wrote."""

counted_requests = Table(
    "counted_requests",
    metadata,
    Column("request_id", KeyText, primary_key=True),
    Column("person_id", CleanText, nullable=False),
    Column("at", Double, nullable=False),
    time_check("at"),
)
"""The requests that count towards a person's hourly limit, each once, from when it was allowed."""

drafts = Table(
    "drafts",
    metadata,
    Column("person_id", KeyText, primary_key=True),
    Column("place", KeyText, primary_key=True),
    Column("text", CleanText, nullable=False),
    Column("updated_at", Double, nullable=False),
    time_check("updated_at"),
)
"""Text typed into a modal that was not submitted; `place` is where the modal was opened."""

preferences = Table(
    "preferences",
    metadata,
    Column("person_id", KeyText, primary_key=True),
    Column("project", CleanText, nullable=False),
    Column("quiet", Boolean, nullable=False),
)
"""A person's preferences: a project's name (empty: none), and whether they are mentioned when a job ends."""

homes = Table(
    "homes",
    metadata,
    Column("person_id", KeyText, primary_key=True),
    Column("page", Integer, nullable=False),
    Column("opened_at", Double, nullable=False),
    Column("due_at", Double),
    Column("claimed_by", CleanText),
    Column("claimed_until", Double),
    CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name="claim"),
    CheckConstraint("claimed_by IS NULL OR due_at IS NOT NULL", name="claimed_is_due"),
    CheckConstraint("page >= 0", name="page"),
    time_check("opened_at"),
    time_check("due_at"),
    time_check("claimed_until"),
)
"""The App Homes of people who have opened them, each published again when it is due."""

Index(None, audit.c.at, audit.c.id)
Index(None, audit.c.person_id, audit.c.at)
Index(None, audit.c.channel_id, audit.c.at)
Index(None, counted_requests.c.person_id, counted_requests.c.at)
Index(None, counted_requests.c.at)
Index(None, drafts.c.updated_at)
Index(None, homes.c.opened_at)
