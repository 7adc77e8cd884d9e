"""Keeping the database in order: deleting, forgetting, what a restore puts in doubt, and how the database is."""
