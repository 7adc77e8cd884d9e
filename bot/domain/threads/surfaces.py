"""Where in Slack somebody asks for something: what they are told of it alone, they are told there. Pure."""

from enum import StrEnum

_HOME = "home/"


class Surface(StrEnum):
    """Where somebody pressed or wrote. Databases hold these words."""

    CONVERSATION = "conversation"
    HOME = "home"
    TOP_LEVEL = "top_level"
    """In a conversation, outside its threads."""


def home_key(click: str) -> str:
    """The source key of a press on Home."""
    return f"{_HOME}{click}"


def surface_of(source_key: str) -> Surface:
    """Where what has this source key was asked for; a retry is asked for where its button is."""
    return Surface.HOME if source_key.removeprefix("retry/").startswith(_HOME) else Surface.CONVERSATION
