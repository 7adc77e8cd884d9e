"""The schema: created, compared and rejected with clear messages; times from before the clock was set back."""

import asyncio
import contextlib
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import CheckConstraint, Connection, inspect, text
from support.fakes.ports import FakeClock
from support.worlds.store_world import (
    LEASE,
    Opener,
    Sql,
    a_post,
    a_start,
    a_thread,
    add,
    claim_notices,
    claim_polls,
    claim_requests,
    watched,
)

from bot.app.startup import migrate_at_start, open_current_store
from bot.errors import ConfigError, SchemaMismatch, StoreError
from bot.store.database.engine import engine_for
from bot.store.people import ClaimedHome
from bot.store.schema.migration import MIGRATIONS, VERSION_TABLE, SchemaState, known_versions, migrate, schema_state
from bot.store.schema.tables import metadata
from bot.store.store import Store, open_store


async def test_an_empty_database_is_refused_until_migrated(empty_database: str) -> None:
    assert await schema_state(empty_database) is SchemaState.EMPTY
    with pytest.raises(SchemaMismatch, match="pagehand migrate"):
        await open_store(empty_database)
    await migrate(empty_database)
    assert await schema_state(empty_database) is SchemaState.CURRENT
    await migrate(empty_database)
    await (await open_store(empty_database)).close()


async def test_concurrent_instances_may_migrate(empty_database: str) -> None:
    await asyncio.gather(*(migrate(empty_database) for _ in range(4)))
    assert await schema_state(empty_database) is SchemaState.CURRENT


async def test_a_failed_migration_changes_nothing(empty_database: str) -> None:
    engine = engine_for(empty_database)
    async with engine.begin() as connection:
        await connection.execute(text("CREATE TABLE notices (id INTEGER)"))
    with pytest.raises(StoreError):
        await migrate(empty_database)
    assert await schema_state(empty_database) is SchemaState.EMPTY
    async with engine.begin() as connection:
        await connection.execute(text("DROP TABLE notices"))
    await engine.dispose()
    await migrate(empty_database)
    assert await schema_state(empty_database) is SchemaState.CURRENT


async def test_the_migrations_create_the_tables_of_the_metadata(empty_database: str) -> None:
    await migrate(empty_database)

    def differences(connection: Connection) -> list[object]:
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))

    options = {
        "version_table": VERSION_TABLE,
        "compare_server_default": True,
        "include_name": lambda name, kind, _: (kind, name) != ("table", "faults"),  # only 1.0.0 uses it
    }
    engine = engine_for(empty_database)
    async with engine.begin() as connection:
        assert await connection.run_sync(differences) == []
        assert await connection.run_sync(_names_of_checks) == {
            table.name: {check.name for check in table.constraints if isinstance(check, CheckConstraint)}
            for table in metadata.sorted_tables
        }
        await connection.execute(text("DROP INDEX ix_polls_due_at"))
        assert len(await connection.run_sync(differences)) == 1
    await engine.dispose()


async def test_a_newer_schema_is_refused(empty_database: str) -> None:
    await migrate(empty_database)
    engine = engine_for(empty_database)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE pagehand_schema SET version_num = '9999', compatible_with = '9998'"))
    await engine.dispose()
    assert await schema_state(empty_database) is SchemaState.NEWER
    with pytest.raises(SchemaMismatch, match="newer version"):
        await open_store(empty_database)
    with pytest.raises(SchemaMismatch, match="newer version"):
        await migrate(empty_database)


NEWEST = known_versions()[-1]
_ANOTHER = """
import sqlalchemy as sa
from alembic import op

revision = "{next}"
down_revision = "{newest}"


def upgrade() -> None:
    op.add_column("threads", sa.Column("note", sa.Text(), nullable=False, server_default="none"))
    op.execute({then!r})
"""


def migrations_with_another(folder: Path, *, then: str = "SELECT 1") -> Path:
    """The existing migrations, and one more, as the next version of Pagehand would have it."""
    made = shutil.copytree(MIGRATIONS, folder / "migrations", ignore=shutil.ignore_patterns("__pycache__"))
    following = f"{int(NEWEST) + 1:04}"
    script = _ANOTHER.format(next=following, newest=NEWEST, then=then)
    (made / "versions" / f"{following}_notes.py").write_text(script)
    return made


async def test_an_older_database_keeps_its_rows(empty_database: str, tmp_path: Path) -> None:
    migrations = migrations_with_another(tmp_path)
    await migrate(empty_database)
    store = await open_store(empty_database)
    await add(store, a_thread("t1"), a_start("t1"))
    await store.close()
    assert await schema_state(empty_database, migrations) is SchemaState.OLDER
    await migrate(empty_database, migrations)
    assert await schema_state(empty_database, migrations) is SchemaState.CURRENT
    engine = engine_for(empty_database)
    async with engine.begin() as connection:
        assert [tuple(row) for row in await connection.execute(text("SELECT id, note FROM threads"))] == [
            ("t1", "none")
        ]
    await engine.dispose()
    with pytest.raises(SchemaMismatch, match="newer version"):
        await open_store(empty_database)


async def test_a_failed_step_leaves_an_older_database_unchanged(empty_database: str, tmp_path: Path) -> None:
    migrations = migrations_with_another(tmp_path, then="SELECT * FROM nothing")
    await migrate(empty_database)
    with pytest.raises(StoreError):
        await migrate(empty_database, migrations)
    assert await schema_state(empty_database) is SchemaState.CURRENT
    await (await open_store(empty_database)).close()


async def test_at_start_an_older_file_is_migrated_but_not_a_shared_database(
    empty_database: str, server: object, tmp_path: Path
) -> None:
    migrations = migrations_with_another(tmp_path)
    await migrate_at_start(empty_database, migrations)
    assert await schema_state(empty_database, migrations) is SchemaState.CURRENT
    engine = engine_for(empty_database)
    async with engine.begin() as connection:
        await connection.execute(text("ALTER TABLE threads DROP COLUMN note"))
        await connection.execute(text("UPDATE pagehand_schema SET version_num = :version"), {"version": NEWEST})
    await engine.dispose()
    with pytest.raises(SchemaMismatch, match="pagehand migrate") if server else contextlib.nullcontext():
        await migrate_at_start(empty_database, migrations)
    state = await schema_state(empty_database, migrations)
    assert state is (SchemaState.OLDER if server else SchemaState.CURRENT)


async def test_a_schema_before_the_first_migration_is_refused_untouched(empty_database: str) -> None:
    await migrate(empty_database)
    engine = engine_for(empty_database)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE pagehand_schema SET version_num = '0016'"))
    await engine.dispose()
    assert await schema_state(empty_database) is SchemaState.TOO_OLD
    for refused in (open_store, migrate, open_current_store):
        with pytest.raises(SchemaMismatch, match=r"before 1\.0"):
            await refused(empty_database)
    assert await schema_state(empty_database) is SchemaState.TOO_OLD


def test_the_listed_versions_match_the_migrations(tmp_path: Path) -> None:
    """They are read from the file names, so that a start need not import Alembic."""
    migrations = migrations_with_another(tmp_path)
    script = ScriptDirectory(str(migrations))
    assert known_versions(migrations) == [revision.revision for revision in script.walk_revisions()][::-1]
    assert known_versions(migrations)[-1] == script.get_current_head()


def _names_of_checks(connection: Connection) -> dict[str, set[str | None]]:
    inspector = inspect(connection)
    return {name: {check["name"] for check in inspector.get_check_constraints(name)} for name in metadata.tables}


async def test_tables_lost_while_running_raise_a_clear_error(empty_database: str) -> None:
    await migrate(empty_database)
    store, engine = await open_store(empty_database), engine_for(empty_database)
    async with engine.begin() as connection:
        await connection.execute(text("DROP TABLE polls"))
    with pytest.raises(SchemaMismatch, match="pagehand migrate"):
        await claim_polls(store)
    await store.close()
    await engine.dispose()


async def claim_homes(store: Store, owner: str) -> Sequence[ClaimedHome]:
    return await store.transact(lambda tx: tx.homes.claim(owner, lease=LEASE, limit=10))


async def test_times_from_before_the_clock_was_set_back_become_due(
    another_store: Opener, server: object, clock: FakeClock, sql: Sql
) -> None:
    before = await another_store()
    await watched(before, "t1")
    await watched(before, "t2", poll_in=14 * 60)
    await watched(before, "t4", poll_in=60)
    await add(before, a_thread("t3", ts="3.1"), a_start("t3"), say=[a_post("a")])
    await before.transact(lambda tx: tx.homes.opened("UANA"))
    claims = (claim_polls, claim_requests, claim_notices, claim_homes)
    for claim in claims:
        assert len(await claim(before, "before")) == 1
    clock.advance(-3600)
    await sql("UPDATE polls SET due_at = due_at - 3600 WHERE thread_id IN ('t2', 't4')")
    after = await another_store()
    taken = [len(await claim(after, "after")) for claim in claims]
    # Leases are kept for a while if other instances may be running.
    assert taken == ([2, 1, 1, 1] if server is None else [1, 0, 0, 0])
    clock.advance(100)
    taken = [len(await claim(after, "after")) for claim in claims]
    assert taken == [3, 1, 1, 1]


async def test_a_file_that_is_not_a_database_is_refused_clearly(tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_text("This is not a database, but it is long enough to be read as one." * 100)
    with pytest.raises(StoreError, match="not a SQLite database"):
        await open_store(f"sqlite:///{path}")
    with pytest.raises(ConfigError, match="does not exist"):
        await open_store(f"sqlite:///{tmp_path}/nowhere/pagehand.db")
