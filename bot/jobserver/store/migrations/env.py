"""Run by Alembic, inside the transaction that `bot.queue.migration` opened."""

from bot.queue.migration import run_migrations

run_migrations()
