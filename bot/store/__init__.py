"""The store: SQLite or PostgreSQL, one code path."""
