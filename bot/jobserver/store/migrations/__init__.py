"""Alembic's migrations of the job server, by the rules of `bot.store.migrations`."""
