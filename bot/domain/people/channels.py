"""What a channel is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Channel:
    """A conversation in Slack. `is_shared_outside`: people of other organizations are in it, or Slack does not say.
    `is_direct`: with one person alone, and then it has no name.
    """

    id: str
    name: str
    is_shared_outside: bool
    is_private: bool
    is_direct: bool = False
