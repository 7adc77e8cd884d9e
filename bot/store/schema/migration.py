"""The versions of the bot's schema."""

from pathlib import Path

from bot.queue.migration import Schema

SCHEMA = Schema(Path(__file__).parents[1] / "migrations", "pagehand_schema")
known_versions, state_of, require_usable = SCHEMA.known_versions, SCHEMA.state_of, SCHEMA.require_usable
schema_state, migrate = SCHEMA.state, SCHEMA.migrate
