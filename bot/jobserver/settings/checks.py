"""Settings: what is checked before a change is proposed."""

from bot.runtime.settings import Settings


class CheckSettings(Settings):
    """What is checked before a change is proposed."""
