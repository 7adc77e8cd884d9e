"""The schema: made, compared and refused with clear words; times from before the clock was set back."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
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
    upgrade_to,
    watched,
)

from bot.errors import ConfigError, SchemaMismatch, StoreError
from bot.ports.people_store import ClaimedHome
from bot.ports.transaction import Store
from bot.store.database.engine import engine_for
from bot.store.schema.migration import VERSION_TABLE, SchemaState, known_versions, migrate, schema_state
from bot.store.schema.tables import metadata
from bot.store.store import open_store

_REQUEST_OF_THE_FIRST_VERSION = (
    "INSERT INTO requests VALUES "
    "(:id, 't1', 'follow_up', :id, 'UANA', 'words', '2.1', 1, :state, :attempts, NULL, '', :due, NULL, NULL)"
)


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
        await connection.execute(text("UPDATE pagehand_schema SET version_num = 'from_the_future'"))
    await engine.dispose()
    assert await schema_state(empty_database) is SchemaState.NEWER
    with pytest.raises(SchemaMismatch, match="newer version"):
        await open_store(empty_database)
    with pytest.raises(SchemaMismatch, match="newer version"):
        await migrate(empty_database)


async def test_an_older_schema_is_refused(empty_database: str) -> None:
    engine = engine_for(empty_database)
    async with engine.begin() as connection:
        await connection.run_sync(upgrade_to, known_versions()[-2])
    await engine.dispose()
    assert await schema_state(empty_database) is SchemaState.OLDER
    with pytest.raises(SchemaMismatch, match="older version"):
        await open_store(empty_database)


async def test_what_the_first_tables_held_is_kept_and_can_be_forgotten(empty_database: str) -> None:
    facts = [
        '{"person":"UANA","text":"\\"person\\":\\"UBEN\\""}',
        '{"text":"a","person":"UBEN"}',
        "{}",
        "broken",
        '{"person":""}',
    ]
    engine = engine_for(empty_database)
    async with engine.begin() as connection:
        await connection.run_sync(upgrade_to, "0001")
        await connection.execute(
            text("INSERT INTO threads VALUES ('t1', 'T1', 'C1', NULL, 'UANA', '', 'docs', 0, 0, NULL, '{}', 0)")
        )
        statement = text(
            "INSERT INTO notices (key, thread_id, kind, what, facts, created_at, state, revision, attempts, uncertain,"
            " plain, problem) VALUES (:key, 't1', 'tell', 'answer', :facts, 0, 'done', 0, 0, FALSE, FALSE, '')"
        )
        await connection.execute(statement, [{"key": str(n), "facts": each} for n, each in enumerate(facts)])
    people = ["UANA", "UBEN", None, None, None]
    async with engine.begin() as connection:
        await connection.run_sync(upgrade_to, "0003")
        rows = await connection.execute(text("SELECT facts, person_id FROM notices ORDER BY key"))
        assert [tuple(row) for row in rows] == list(zip(facts, people, strict=True))
    await migrate(empty_database)
    async with engine.begin() as connection:
        rows = await connection.execute(text("SELECT person_id FROM notices ORDER BY key"))
        assert [row[0] for row in rows] == people
    await engine.dispose()


async def test_requests_of_the_first_version_are_kept(empty_database: str) -> None:
    """And one that was tried then may have arrived: nobody had noted whether it can."""
    engine = engine_for(empty_database)
    async with engine.begin() as connection:
        await connection.run_sync(upgrade_to, "0001")
        await connection.execute(
            text("INSERT INTO threads VALUES ('t1', 'T1', 'C1', '1.1', 'UANA', 'x', 'docs', 1, 1, 'job-1', '{}', 0)")
        )
        for name, state, attempts, due in (("r0", "waiting", 0, 5), ("r1", "waiting", 2, 5), ("r2", "taken", 1, None)):
            row = {"id": name, "state": state, "attempts": attempts, "due": due}
            await connection.execute(text(_REQUEST_OF_THE_FIRST_VERSION), row)
        await connection.execute(text("INSERT INTO early_replies VALUES ('C1', '3.1', '1.2', 'UANA', 'T1', 'early')"))
    assert await schema_state(empty_database) is SchemaState.OLDER
    await migrate(empty_database)
    async with engine.begin() as connection:
        kept = await connection.execute(
            text("SELECT id, text, state, attempts, due_at, edited_at, latest_text FROM requests")
        )
        rows = sorted(tuple(row) for row in kept)
        uncertain = await connection.execute(text("SELECT id FROM requests WHERE uncertain"))
        assert [row[0] for row in uncertain] == ["r1"]
        (early,) = await connection.execute(text("SELECT text, attachments, edited_at, withdrawn FROM early_replies"))
    await engine.dispose()
    assert rows == [
        ("r0", "words", "waiting", 0, 5.0, "", None),
        ("r1", "words", "waiting", 2, 5.0, "", None),
        ("r2", "words", "accepted", 1, None, "", None),
    ]
    assert tuple(early) == ("early", "", "", False)


def _names_of_checks(connection: Connection) -> dict[str, set[str | None]]:
    inspector = inspect(connection)
    return {name: {check["name"] for check in inspector.get_check_constraints(name)} for name in metadata.tables}


async def test_tables_lost_while_running_are_a_clear_error(empty_database: str) -> None:
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


async def test_times_from_before_the_clock_was_set_back_are_made_due(
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
    # What is leased stays so for a while where other instances may be at work.
    assert taken == ([2, 1, 1, 1] if server is None else [1, 0, 0, 0])
    clock.advance(100)
    taken = [len(await claim(after, "after")) for claim in claims]
    assert taken == [3, 1, 1, 1]


async def test_a_database_that_is_none_is_refused_in_plain_words(tmp_path: Path) -> None:
    path = tmp_path / "note.txt"
    path.write_text("This is not a database, but it is long enough to be read as one." * 100)
    with pytest.raises(StoreError, match="not a SQLite database"):
        await open_store(f"sqlite:///{path}")
    with pytest.raises(ConfigError, match="does not exist"):
        await open_store(f"sqlite:///{tmp_path}/nowhere/pagehand.db")
