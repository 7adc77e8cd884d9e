"""Alembic's migrations: `versions/`, one file a step, never changed once released."""
