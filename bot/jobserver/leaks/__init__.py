"""Finds keys, tokens and passwords that a change would add to the repository."""
