"""The tables for operators: when each kind of event last happened, and faults of the set-up."""

from sqlalchemy import CheckConstraint, Column, Double, Index, Integer, Table, Text

from bot.store.schema.column_types import CleanText, KeyText, metadata, time_check

last_times = Table(
    "last_times",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("at", Double, nullable=False),
    time_check("at"),
)
"""A row for each LastTime that has happened."""

faults = Table(
    "faults",
    metadata,
    Column("key", KeyText, primary_key=True),
    Column("parent", CleanText, nullable=False),
    Column("words", CleanText, nullable=False),
    Column("found_at", Double, nullable=False),
    Column("cleared_at", Double),
    Column("attempts", Integer, nullable=False),
    Column("due_at", Double),
    Column("claimed_by", CleanText),
    Column("claimed_until", Double),
    CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name="claim"),
    CheckConstraint("claimed_by IS NULL OR due_at IS NOT NULL", name="claimed_is_due"),
    CheckConstraint("attempts >= 0", name="attempts"),
    time_check("found_at"),
    time_check("cleared_at"),
    time_check("due_at"),
    time_check("claimed_until"),
)
"""Faults that checks found, by the check's name; `parent` is that name without its last part. `found_at` is when the
fault was first seen since the last report, `cleared_at` when it was gone (NULL: it exists), `due_at` when to report it
if it exists then (NULL: nothing to report)."""

Index(None, faults.c.parent)
