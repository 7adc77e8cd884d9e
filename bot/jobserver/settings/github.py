"""Settings: pull requests at GitHub."""

from bot.runtime.settings import Settings


class GitHubSettings(Settings):
    """Pull requests at GitHub."""
