"""Calls to Slack's Web API."""
