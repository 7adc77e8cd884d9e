"""Checks of the set-up, one module a subject: `pagehand doctor` runs them, and so does the bot while it is at work."""
