"""Reads the contents of a Slack message, from any source. Everything kept is bounded and cleaned."""
