"""The table about Slack's limits: what was called of late."""

from sqlalchemy import Column, Double, Index, Table, Text

from bot.store.schema.column_types import KeyText
from bot.store.schema.metadata import metadata, time_check

slack_calls = Table(
    "slack_calls",
    metadata,
    Column("method", Text, primary_key=True),
    Column("channel_id", KeyText, primary_key=True),
    Column("tat", Double, nullable=False),
    time_check("tat"),
)
"""A row for each of Slack's methods, and for each channel that one was called in lately (empty: the whole workspace).
`tat` is the theoretical arrival time of `bot.domain.slack_limits`."""

Index(None, slack_calls.c.tat)
