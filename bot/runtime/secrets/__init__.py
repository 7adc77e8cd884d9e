"""Finds secrets in texts and masks them: keys, tokens and passwords, by rules that are data."""
