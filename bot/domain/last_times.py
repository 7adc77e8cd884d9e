"""Kinds of events whose last time is recorded: arrivals from Slack, and maintenance by the operator."""

from enum import StrEnum


class LastTime(StrEnum):
    """A kind of event. The values are stored in databases."""

    COMMAND = "command"
    """A slash command came from Slack."""
    EVENT = "event"
    """An event came from Slack: a message, a mention, a reaction, an opened Home."""
    CLICK = "click"
    """A button, a menu, a shortcut or a form was used in Slack."""
    BAD_SIGNATURE = "bad_signature"
    """An HTTP request arrived that was not signed with our secret."""
    BACKUP = "backup"
    """`pagehand backup` copied the database."""
