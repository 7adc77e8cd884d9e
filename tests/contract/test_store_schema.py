"""The schema: made, compared and refused with clear words; times from before the clock was set back."""

import asyncio
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from fakes import FakeClock
from sqlalchemy import Connection, text
from store_world import (
    Opener,
    Sql,
    a_post,
    a_start,
    a_thread,
    add,
    claim_notices,
    claim_requests,
    claim_watches,
    watched,
)

from bot.errors import ConfigError, SchemaMismatch, StoreError
from bot.store import SchemaState, migrate, open_store, schema_state
from bot.store.engine import engine_for
from bot.store.schema import VERSION_TABLE
from bot.store.tables import metadata


async def test_an_empty_database_is_refused_then_migrated(empty_database: str) -> None:
    assert await schema_state(empty_database) is SchemaState.EMPTY
    with pytest.raises(SchemaMismatch, match="pagehand migrate"):
        await open_store(empty_database)
    await migrate(empty_database)
    assert await schema_state(empty_database) is SchemaState.CURRENT
    await migrate(empty_database)
    await (await open_store(empty_database)).close()


async def test_several_instances_may_migrate_at_once(empty_database: str) -> None:
    await asyncio.gather(*(migrate(empty_database) for _ in range(4)))
    assert await schema_state(empty_database) is SchemaState.CURRENT


async def test_a_migration_that_fails_changes_nothing(empty_database: str) -> None:
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


async def test_the_migrations_make_the_tables_that_the_program_knows(empty_database: str) -> None:
    await migrate(empty_database)

    def differences(connection: Connection) -> list[object]:
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))

    options = {"version_table": VERSION_TABLE, "compare_server_default": True}
    engine = engine_for(empty_database)
    async with engine.begin() as connection:
        assert await connection.run_sync(differences) == []
        await connection.execute(text("DROP INDEX ix_watches_due_at"))
        assert len(await connection.run_sync(differences)) == 1
    await engine.dispose()


async def test_a_newer_schema_is_refused(empty_database: str) -> None:
    await migrate(empty_database)
    engine = engine_for(empty_database)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE pagehand_schema SET version_num = 'from_the_future'"))
    await engine.dispose()
    assert await schema_state(empty_database) is SchemaState.NEWER
    with pytest.raises(SchemaMismatch, match="newer version"):
        await open_store(empty_database)
    with pytest.raises(SchemaMismatch, match="newer version"):
        await migrate(empty_database)


async def test_an_older_schema_is_refused(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # There is one migration so far, so the program is made to know of a later one.
    monkeypatch.setattr("alembic.script.ScriptDirectory.get_current_head", lambda _self: "0002")
    assert await schema_state(database) is SchemaState.OLDER
    with pytest.raises(SchemaMismatch, match="older version"):
        await open_store(database)


async def test_tables_lost_while_running_are_a_clear_error(empty_database: str) -> None:
    await migrate(empty_database)
    store, engine = await open_store(empty_database), engine_for(empty_database)
    async with engine.begin() as connection:
        await connection.execute(text("DROP TABLE watches"))
    with pytest.raises(SchemaMismatch, match="pagehand migrate"):
        await claim_watches(store)
    await store.close()
    await engine.dispose()


async def test_times_from_before_the_clock_was_set_back_are_made_due(
    another_store: Opener, server: object, clock: FakeClock, sql: Sql
) -> None:
    before = await another_store()
    await watched(before, "t1")
    await watched(before, "t2", poll_in=14 * 60)
    await watched(before, "t4", poll_in=60)
    await add(before, a_thread("t3", ts="3.1"), a_start("t3"), say=[a_post("a")])
    claims = (claim_watches, claim_requests, claim_notices)
    for claim in claims:
        assert len(await claim(before, "before")) == 1
    clock.advance(-3600)
    await sql("UPDATE watches SET due_at = due_at - 3600 WHERE thread_id IN ('t2', 't4')")
    after = await another_store()
    taken = [len(await claim(after, "after")) for claim in claims]
    # What is leased stays so for a while where other instances may be at work.
    assert taken == ([2, 1, 1] if server is None else [1, 0, 0])
    clock.advance(100)
    taken = [len(await claim(after, "after")) for claim in claims]
    assert taken == [3, 1, 1]


async def test_a_database_that_is_none_is_refused_in_plain_words(tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_text("This is not a database, but it is long enough to be read as one." * 100)
    with pytest.raises(StoreError, match="not a SQLite database"):
        await open_store(f"sqlite:///{path}")
    with pytest.raises(ConfigError, match="does not exist"):
        await open_store(f"sqlite:///{tmp_path}/nowhere/pagehand.db")
