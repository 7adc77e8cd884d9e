"""Pagehand: hands documentation tasks from Slack to a background agent, and brings the pull request back."""

from importlib.metadata import version

__version__ = version("pagehand")
