"""Reads what a Slack message holds, wherever it comes from. Whatever is kept is bounded and cleaned."""
