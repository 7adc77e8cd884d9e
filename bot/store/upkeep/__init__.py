"""Keeping the database in order: deleting, forgetting, marking as uncertain after a restore, and checking."""
