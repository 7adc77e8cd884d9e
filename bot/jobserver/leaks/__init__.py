"""Finds what a change would give away: keys, tokens and passwords that are new in the repository."""
