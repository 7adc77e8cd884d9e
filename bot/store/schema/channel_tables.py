"""The table about channels: under which ids they are known."""

from sqlalchemy import Column, Double, Index, Table

from bot.store.schema.column_types import CleanText, KeyText
from bot.store.schema.metadata import metadata, time_check

channel_ids = Table(
    "channel_ids",
    metadata,
    Column("channel_id", KeyText, primary_key=True),
    Column("known_as", CleanText, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("recorded_at", Double, nullable=False),
    time_check("changed_at"),
    time_check("recorded_at"),
)
"""The ids of channels whose id Slack changed; `known_as` is the first, which rows go by."""

Index(None, channel_ids.c.known_as, channel_ids.c.changed_at)
Index(None, channel_ids.c.recorded_at)
