"""The documentation projects that jobs can be for, and how a job comes to its project. Pure."""

from enum import StrEnum


class ProjectReason(StrEnum):
    """Why a job is for its project."""

    ONLY_ONE = "only_one"
    SAID = "said"
    """Its person named it."""
    THREAD = "thread"
    """The thread had a job for it already."""
    CHANNEL = "channel"
    """It is the channel's."""
    WORDS = "words"
    """Words of the request route to it."""
    DEFAULT = "default"
    """It is what this person prefers."""
    CHOSEN = "chosen"
    """Its person was asked."""
