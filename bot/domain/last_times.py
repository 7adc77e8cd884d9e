"""When something happened last: what came from Slack, and what an operator has to see to."""

from enum import StrEnum


class LastTime(StrEnum):
    """What it is that happened. Databases hold these words."""

    COMMAND = "command"
    """A slash command came from Slack."""
    EVENT = "event"
    """The same of an event: a message, a mention, a reaction, a Home that was opened."""
    CLICK = "click"
    """The same of a button, a menu, a shortcut or a form."""
    BAD_SIGNATURE = "bad_signature"
    """A request came over HTTP that was not signed with our secret."""
    BACKUP = "backup"
    """`pagehand backup` copied the database."""
    CHECKS = "checks"
    """The checks of the set-up were run, and their findings recorded."""
