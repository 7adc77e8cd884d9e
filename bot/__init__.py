"""Pagehand: hands documentation tasks from Slack to a background agent, and brings the pull request back."""

__version__ = "0.1.0"
"""Said here, and read from here when it is packaged: a checkout with its requirements alone can tell it, too."""
