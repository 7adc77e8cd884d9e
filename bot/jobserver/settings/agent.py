"""Settings: which agent it is, and how it is run."""

from bot.runtime.settings import Settings


class AgentSettings(Settings):
    """Which agent it is, and how it is run."""
