"""The tables about times in which nobody listened to Slack."""

from sqlalchemy import Boolean, CheckConstraint, Column, Double, ForeignKey, Index, Integer, Table

from bot.store.schema.column_types import CleanText, KeyText, metadata, time_check

listening = Table(
    "listening",
    metadata,
    Column("owner", KeyText, primary_key=True),
    Column("since", Double, nullable=False),
    Column("until", Double, nullable=False),
    time_check("since"),
    time_check("until"),
)
"""From when until when each process has listened; `until` of the row without an owner is until when any has."""

gaps = Table(
    "gaps",
    metadata,
    Column("channel_id", KeyText, primary_key=True),
    Column("thread_ts", KeyText, primary_key=True),
    Column("since", Double, nullable=False),
    Column("until", Double, nullable=False),
    Column("asks", Boolean, nullable=False),
    Column("first", Boolean, nullable=False),
    Column("newest", Double, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due_at", Double),
    Column("claimed_by", CleanText),
    Column("claimed_until", Double),
    CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name="claim"),
    CheckConstraint("attempts >= 0", name="attempts"),
    time_check("since"),
    time_check("until"),
    time_check("newest"),
    time_check("due_at"),
    time_check("claimed_until"),
)
"""Conversations whose history is still to be read (Gap), those with the `newest` news first."""

stops_seen = Table(
    "stops_seen",
    metadata,
    Column("thread_id", KeyText, ForeignKey("threads.id", ondelete="CASCADE"), primary_key=True),
    Column("person_id", KeyText, primary_key=True),
)
"""Whose reaction for a stop on a job's card was found in Slack's history."""

Index(None, stops_seen.c.person_id)
