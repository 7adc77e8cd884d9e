"""Pagehand: hands documentation tasks from Slack to a background agent, and brings the pull request back."""

__version__ = "1.0.0"
"""The build reads it from here, so a checkout that is not installed as a package knows its version, too."""
