"""The schema's versions: determines a database's version, and migrates it to ours."""

import logging
from enum import StrEnum
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from bot.errors import SchemaMismatch
from bot.queue.engine import DatabaseConnection, run_in

VERSION_TABLE = "pagehand_schema"
"""Alembic's, with a column of our own: `compatible_with`, the oldest schema whose programs can work with this one."""
_MIGRATING = 7_248_913_520_846
"""The key of PostgreSQL's advisory lock for migrations; any number that nobody else uses."""
_LONGEST_STATEMENT = 3600.0
"""Seconds. Building an index on a large table takes long, and so does waiting for a process that builds one."""

WORDS = {
    "empty": "The database has no tables yet. Run `pagehand migrate`.",
    "older": "The database is of an older version of Pagehand. Make a backup, then run `pagehand migrate`.",
    "too_old": "The database is of Pagehand before 1.0. Run `pagehand migrate` of the last version before 1.0 first, or"
    " begin with a new database.",
    "newer": "The database is of a newer version of Pagehand. Install that version, or restore a backup from before.",
    "compatible": "The database is of a newer version of Pagehand, and this version can work with it.",
}

logger = logging.getLogger(__name__)


class SchemaState(StrEnum):
    """A database's schema compared with this program's."""

    EMPTY = "empty"
    TOO_OLD = "too_old"
    OLDER = "older"
    CURRENT = "current"
    COMPATIBLE = "compatible"
    """Newer, but only expanded: this program can work with it."""
    NEWER = "newer"

    @property
    def usable(self) -> bool:
        """Whether this program can work with the database as it is."""
        return self in {SchemaState.CURRENT, SchemaState.COMPATIBLE}


MIGRATIONS = Path(__file__).parents[1] / "migrations"


def known_versions(migrations: Path = MIGRATIONS) -> list[str]:
    """Returns the numbers of the migrations, the newest last."""
    return sorted(file.name.partition("_")[0] for file in (migrations / "versions").glob("[0-9]*.py"))


def state_of(connection: Connection, migrations: Path = MIGRATIONS) -> SchemaState:
    """Returns the state of a connection's database."""
    versions, (version, compatible_with) = known_versions(migrations), _version_of(connection)
    if version is None:
        return SchemaState.EMPTY
    if version == versions[-1]:
        return SchemaState.CURRENT
    if version in versions:
        return SchemaState.OLDER
    if version < versions[0]:
        return SchemaState.TOO_OLD
    is_compatible = compatible_with is not None and compatible_with <= versions[-1]
    return SchemaState.COMPATIBLE if is_compatible else SchemaState.NEWER


def _version_of(connection: Connection) -> tuple[str | None, str | None]:
    """The schema's version, and the oldest one whose programs can work with it; None if that is not known."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None, None
    row = connection.execute(text(f"SELECT * FROM {VERSION_TABLE}")).mappings().first()  # noqa: S608 - our own word
    return (None, None) if row is None else (row["version_num"], row.get("compatible_with"))


def require_usable(connection: Connection) -> None:
    """Raises SchemaMismatch, with advice, if this program cannot work with the schema."""
    state = state_of(connection)
    if not state.usable:
        raise SchemaMismatch(WORDS[state])


async def schema_state(url: str, migrations: Path = MIGRATIONS) -> SchemaState:
    """Returns the state of a database's schema. Raises what `open_store` raises if it cannot be opened."""
    return await run_in(url, lambda connection: connection.run_sync(state_of, migrations))


async def migrate(url: str, migrations: Path = MIGRATIONS) -> None:
    """Migrates a database's schema to ours in one transaction, so a failure changes nothing. Several
    processes may call this at once: one migrates, the others wait.

    Raises:
        SchemaMismatch: It is newer than this program, or older than its first migration.
        StoreError: It cannot be opened or changed.
    """

    async def work(connection: DatabaseConnection) -> None:
        if connection.dialect.name == "postgresql":
            await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATING})
        await connection.run_sync(_upgrade, migrations)

    await run_in(url, work, statement_timeout=_LONGEST_STATEMENT)


def _upgrade(connection: Connection, migrations: Path) -> None:
    state = state_of(connection, migrations)
    if state.usable:
        return
    if state in {SchemaState.NEWER, SchemaState.TOO_OLD}:
        raise SchemaMismatch(WORDS[state])
    if state is SchemaState.OLDER:
        logger.info("The database's schema is being brought up to date. With a million jobs this takes minutes.")
    # Alembic takes as long as half of the rest, and migrates once a version.
    from alembic import command  # noqa: PLC0415 - as said above
    from alembic.config import Config  # noqa: PLC0415 - as said above
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - as said above

    config = Config()
    config.set_main_option("script_location", str(migrations).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    # Which programs can work with the schema, as its newest migration says.
    newest = ScriptDirectory.from_config(config).get_revision("head").module
    oldest = getattr(newest, "compatible_with", newest.revision)
    connection.execute(text(f"UPDATE {VERSION_TABLE} SET compatible_with = :oldest"), {"oldest": oldest})  # noqa: S608 - our own word
    logger.info("The database's schema was brought up to date (it was %s).", state)
