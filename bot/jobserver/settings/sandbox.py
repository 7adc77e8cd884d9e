"""Settings: what foreign programs can see, reach and use up."""

from bot.runtime.settings import Settings


class SandboxSettings(Settings):
    """What foreign programs can see, reach and use up."""
