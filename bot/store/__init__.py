"""The store: SQLite or PostgreSQL, one code path."""

from bot.store.schema import SchemaState, migrate, schema_state
from bot.store.store import open_store

__all__ = ["SchemaState", "migrate", "open_store", "schema_state"]
