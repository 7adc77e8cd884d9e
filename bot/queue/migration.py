"""A schema's versions: determines a database's version, and migrates it to ours."""

import logging
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from sqlalchemy import Connection, inspect, text

from bot.errors import SchemaMismatch
from bot.queue.engine import DatabaseConnection, run_in

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


@dataclass(frozen=True)
class Schema:
    """The tables of one program. `migrations` is Alembic's folder; `version_table` is its table, with a column of ours:
    `compatible_with`, the oldest schema whose programs can work with this one.
    """

    migrations: Path
    version_table: str

    def known_versions(self) -> list[str]:
        """Returns the numbers of the migrations, the newest last."""
        return sorted(file.name.partition("_")[0] for file in (self.migrations / "versions").glob("[0-9]*.py"))

    def state_of(self, connection: Connection) -> SchemaState:
        """Returns the state of a connection's database."""
        versions, (version, compatible_with) = self.known_versions(), self._version_of(connection)
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

    def _version_of(self, connection: Connection) -> tuple[str | None, str | None]:
        """The schema's version, and the oldest one whose programs can work with it; None if that is not known."""
        if not inspect(connection).has_table(self.version_table):
            return None, None
        row = connection.execute(text(f"SELECT * FROM {self.version_table}")).mappings().first()  # noqa: S608 - our own word
        return (None, None) if row is None else (row["version_num"], row.get("compatible_with"))

    def require_usable(self, connection: Connection) -> None:
        """Raises SchemaMismatch, with advice, if this program cannot work with the schema."""
        state = self.state_of(connection)
        if not state.usable:
            raise SchemaMismatch(WORDS[state])

    async def state(self, url: str) -> SchemaState:
        """Returns the state of a database's schema. Raises ConfigError, StoreError if it cannot be opened."""
        return await run_in(url, lambda connection: connection.run_sync(self.state_of))

    async def migrate(self, url: str) -> None:
        """Migrates a database's schema to ours in one transaction, so a failure changes nothing. Several
        processes may call this at once: one migrates, the others wait.

        Raises:
            SchemaMismatch: It is newer than this program, or older than its first migration.
            StoreError: It cannot be opened or changed.
        """

        async def work(connection: DatabaseConnection) -> None:
            if connection.dialect.name == "postgresql":
                await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATING})
            await connection.run_sync(self._upgrade)

        await run_in(url, work, statement_timeout=_LONGEST_STATEMENT)

    def _upgrade(self, connection: Connection) -> None:
        state = self.state_of(connection)
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
        config.set_main_option("script_location", str(self.migrations).replace("%", "%%"))
        config.set_main_option("path_separator", "os")
        config.attributes |= {"connection": connection, "version_table": self.version_table}
        command.upgrade(config, "head")
        # Which programs can work with the schema, as its newest migration says.
        newest = ScriptDirectory.from_config(config).get_revision("head").module
        oldest = getattr(newest, "compatible_with", newest.revision)
        compatible = text(f"UPDATE {self.version_table} SET compatible_with = :oldest")  # noqa: S608 - our own word
        connection.execute(compatible, {"oldest": oldest})
        logger.info("The database's schema was brought up to date.")


def run_migrations() -> None:
    """Runs the migrations; called by their env.py, within the transaction of `Schema.migrate`."""
    from alembic import context  # noqa: PLC0415 - as said above

    connection = context.config.attributes["connection"]
    context.configure(
        connection=connection,
        version_table=context.config.attributes["version_table"],
        transactional_ddl=True,
        render_as_batch=connection.dialect.name == "sqlite",
    )
    with context.begin_transaction():
        context.run_migrations()
