"""Slack's payloads as models. No field is trusted to be there, or to have its documented type."""
