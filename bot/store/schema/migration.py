"""The schema's versions: determines a database's version, and migrates it to ours."""

import ast
import logging
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.errors import SchemaMismatch
from bot.store.database.engine import run_in

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
    return [file.name.partition("_")[0] for file in _files(migrations)]


def _files(migrations: Path) -> list[Path]:
    return sorted((migrations / "versions").glob("[0-9]*.py"))


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


@dataclass(frozen=True)
class MigrationStep:
    """A migration: the version that it makes, what it is for, and the oldest schema whose programs it allows."""

    version: str
    title: str
    compatible_with: str


@dataclass(frozen=True)
class SchemaReport:
    """A database's schema, and the migrations that it lacks."""

    state: SchemaState
    version: str | None
    missing: tuple[MigrationStep, ...]

    @property
    def expands(self) -> bool:
        """Whether programs that know the database's present schema can work with the new one."""
        return bool(self.version and self.missing) and self.missing[-1].compatible_with <= str(self.version)


async def schema_report(url: str, migrations: Path = MIGRATIONS) -> SchemaReport:
    """Returns how a database's schema is. Raises what `schema_state` raises."""

    def read(connection: Connection) -> SchemaReport:
        state, (version, _) = state_of(connection, migrations), _version_of(connection)
        steps = map(_step, _files(migrations)) if state is SchemaState.OLDER else ()
        return SchemaReport(state, version, tuple(step for step in steps if step.version > str(version)))

    return await run_in(url, lambda connection: connection.run_sync(read))


def _step(file: Path) -> MigrationStep:
    """Reads a migration off its file, without Alembic."""
    module, version = ast.parse(file.read_text(encoding="utf-8")), file.name.partition("_")[0]
    constants = {
        str(getattr(statement.targets[0], "id", "")): statement.value.value
        for statement in module.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
    }
    title = (ast.get_docstring(module) or "").partition("\n")[0]
    return MigrationStep(version, title, str(constants.get("compatible_with", version)))


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

    async def work(connection: AsyncConnection) -> None:
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

    config = Config()
    config.set_main_option("script_location", str(migrations).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    # Which programs can work with the schema, as its newest migration says.
    oldest = _step(_files(migrations)[-1]).compatible_with
    connection.execute(text(f"UPDATE {VERSION_TABLE} SET compatible_with = :oldest"), {"oldest": oldest})  # noqa: S608 - our own word
    logger.info("The database's schema was brought up to date (it was %s).", state)
