"""Reads and writes Slack's payloads. No I/O."""
