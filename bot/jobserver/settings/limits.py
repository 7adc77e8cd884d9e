"""Settings: how much a change may be, and how long things are kept."""

from bot.runtime.settings import Settings


class LimitSettings(Settings):
    """How much a change may be, and how long things are kept."""
