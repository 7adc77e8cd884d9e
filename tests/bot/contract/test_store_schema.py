"""The schema: created, compared and rejected with clear messages; the database's files, and times from before the
clock was set back."""

import asyncio
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from click.testing import CliRunner, Result
from sqlalchemy import CheckConstraint, Connection, inspect, text
from support.databases import engine_for
from support.disks import a_disk, fill, make_read_only
from support.fakes.ports import FakeClock
from support.worlds.store_world import (
    LEASE,
    Opener,
    Sql,
    StoreWorld,
    a_post,
    a_start,
    a_thread,
    run_sql,
)

from bot.app.edges import open_current_store
from bot.cli.backup import back_up
from bot.cli.main import main
from bot.domain.pull_requests import FollowedPullRequest
from bot.domain.threads.thread import ThreadState
from bot.errors import ConfigError, SchemaMismatch, StoreError
from bot.jobapi.models import Job
from bot.queue.migration import SchemaState
from bot.store.files import hold_file
from bot.store.people import ClaimedHome
from bot.store.schema.migration import SCHEMA, known_versions, migrate, schema_state
from bot.store.schema.rows import followed_from
from bot.store.schema.tables import metadata
from bot.store.store import open_store


@pytest.mark.either_database
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
    await run_sql(empty_database, "CREATE TABLE notices (id INTEGER)")
    with pytest.raises(StoreError):
        await migrate(empty_database)
    assert await schema_state(empty_database) is SchemaState.EMPTY
    await run_sql(empty_database, "DROP TABLE notices")
    await migrate(empty_database)
    assert await schema_state(empty_database) is SchemaState.CURRENT


async def test_the_migrations_create_the_tables_of_the_metadata(empty_database: str) -> None:
    await migrate(empty_database)

    def differences(connection: Connection) -> list[object]:
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))

    options = {
        "version_table": SCHEMA.version_table,
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


@pytest.mark.either_database
async def test_the_links_of_earlier_jobs_are_adopted_over_an_hour(empty_database: str) -> None:
    await migrate(empty_database)
    store = await open_store(empty_database)
    jobs = {
        "t1": Job("j1", "completed", "https://git.example/1"),
        "t2": Job("j2", "completed"),
        "t3": Job("j3", "completed", "https://git.example/3"),
        "t4": Job("j4", "active", "https://git.example/4"),
    }
    for name, job in jobs.items():
        await StoreWorld(store).add(a_thread(name, state=ThreadState(job=job)), a_start(name))
    await store.close()
    engine = engine_for(empty_database)
    async with engine.begin() as connection:
        await connection.execute(text("DROP TABLE pull_requests"))
        for column in ("polls DROP COLUMN seen", "requests DROP COLUMN mode"):
            await connection.execute(text(f"ALTER TABLE {column}"))
        await connection.execute(text("UPDATE threads SET state = 'damaged' WHERE id = 't3'"))
        await connection.execute(text(f"UPDATE {SCHEMA.version_table} SET version_num = '0026'"))  # noqa: S608 - our own word
    await migrate(empty_database)
    async with engine.begin() as connection:
        query = text("SELECT thread_id, link, followed, due_at FROM pull_requests ORDER BY due_at")
        rows = (await connection.execute(query)).all()
    await engine.dispose()
    assert [row[:2] for row in rows] == [("t1", "https://git.example/1"), ("t4", "https://git.example/4")]
    assert all(followed_from(row.followed) == FollowedPullRequest(adopted=True) for row in rows)
    assert [round(row.due_at - time.time(), -2) for row in rows] == [1_800, 3_600]


NEWEST = known_versions()[-1]


@pytest.mark.either_database
async def test_a_schema_before_the_first_migration_is_refused_untouched(empty_database: str) -> None:
    await migrate(empty_database)
    await run_sql(empty_database, "UPDATE pagehand_schema SET version_num = '0016'")
    for opening in (open_store, migrate, open_current_store):
        with pytest.raises(SchemaMismatch, match=r"before 1\.0"):
            await opening(empty_database)
    assert await schema_state(empty_database) is SchemaState.TOO_OLD


def _names_of_checks(connection: Connection) -> dict[str, set[str | None]]:
    inspector = inspect(connection)
    return {name: {check["name"] for check in inspector.get_check_constraints(name)} for name in metadata.tables}


@pytest.mark.either_database
async def test_tables_lost_while_running_raise_a_clear_error(empty_database: str) -> None:
    await migrate(empty_database)
    store = StoreWorld(await open_store(empty_database))
    await run_sql(empty_database, "DROP TABLE polls")
    with pytest.raises(SchemaMismatch, match="pagehand migrate"):
        await store.claim_polls()
    await store.close()


async def claim_homes(store: StoreWorld, owner: str) -> Sequence[ClaimedHome]:
    return await store.transact(lambda tx: tx.homes.claim(owner, lease=LEASE, limit=10))


async def test_times_from_before_the_clock_was_set_back_become_due(
    another_store: Opener, server: object, clock: FakeClock, sql: Sql
) -> None:
    before = await another_store()
    await before.watched("t1")
    await before.watched("t2", poll_in=14 * 60)
    await before.watched("t4", poll_in=60)
    await before.add(a_thread("t3", ts="3.1"), a_start("t3"), say=[a_post("a")])
    await before.transact(lambda tx: tx.homes.opened("UANA"))
    claims = (StoreWorld.claim_polls, StoreWorld.claim_requests, StoreWorld.claim_notices, claim_homes)
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


SETTINGS = {
    "SLACK_BOT_TOKEN": "xoxb-planted-token",
    "SLACK_APP_TOKEN": "xapp-planted-token",
    "JOB_API_URL": "http://127.0.0.1:9",
    "JOB_API_KEY": "planted-key",
    "JOB_API_PROJECT": "docs",
}


def pagehand(command: str, file: Path, *options: str) -> Result:
    return CliRunner().invoke(main, [command, *options], env={**SETTINGS, "DATABASE_URL": f"sqlite:///{file}"})


def refused(command: str, file: Path, *options: str) -> str:
    """Returns what a command says that fails."""
    result = pagehand(command, file, *options)
    assert result.exit_code == 1, result.output
    return result.output


async def made(directory: Path) -> Path:
    file = directory / "pagehand.db"
    await migrate(f"sqlite:///{file}")
    return file


@pytest.fixture
def database_file(tmp_path: Path, sqlite_template: Path) -> Path:
    return Path(shutil.copy(sqlite_template, tmp_path / "pagehand.db"))


def test_an_unwritable_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "pagehand.db").symlink_to(tmp_path / "nowhere" / "pagehand.db")
    words = "could not be made. Check that its directory may be written."
    assert words in refused("migrate", tmp_path / "pagehand.db")


def test_a_full_disk_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    with a_disk(tmp_path / "disk", "2m") as disk:
        file, filler = disk / "pagehand.db", disk / "filler"
        fill(filler)
        for command in ("migrate", "run"):
            assert "The database's disk is full. Nothing was lost; make room on it." in refused(command, file)
            for left in disk.glob("pagehand.db*"):
                left.unlink()
        filler.unlink()
        assert pagehand("migrate", file).exit_code == 0


@pytest.mark.parametrize("command", ["migrate", "run"])
def test_a_read_only_disk_is_named(tmp_path: Path, sqlite_template: Path, command: str) -> None:
    with a_disk(tmp_path / "disk", "2m") as disk:
        shutil.copy(sqlite_template, disk / "pagehand.db")
        make_read_only(disk)
        for name, words in (("pagehand.db", "could not be opened"), ("new.db", "could not be made")):
            said = refused(command, disk / name)
            assert words in said
            assert "directory" in said


def test_a_second_process_on_a_file_is_refused(database_file: Path) -> None:
    with hold_file(str(database_file)):
        assert "and a SQLite database serves one. Stop that one first" in refused("run", database_file)


NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """A place for a database, whose permissions no umask restricts."""
    before = os.umask(0)
    yield tmp_path / "pagehand.sqlite3"
    os.umask(before)


def owner_and_mode(file: Path) -> tuple[int, int]:
    return file.stat().st_uid, file.stat().st_mode & 0o777


def give_away(file: Path) -> None:
    os.chown(file, NOBODY, NOBODY)
    file.chmod(0o644)


def modes(directory: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mode & 0o777 for file in directory.iterdir()}


async def test_a_new_database_and_its_backup_are_private_to_the_owner(path: Path) -> None:
    await migrate(f"sqlite:///{path}")
    store = StoreWorld(await open_store(f"sqlite:///{path}"))
    await store.add(a_thread())
    await back_up(f"sqlite:///{path}", path.with_name("copy.sqlite3"))
    names = (path.name, f"{path.name}-wal", f"{path.name}-shm", "copy.sqlite3")
    assert modes(path.parent) == dict.fromkeys(names, 0o600)
    await store.close()


async def test_an_existing_file_loses_permissions_for_others(path: Path) -> None:
    url = f"sqlite:///{path}"
    await migrate(url)
    first = StoreWorld(await open_store(url))
    await first.add(a_thread())
    for file in path.parent.iterdir():
        file.chmod(0o664)
    second = StoreWorld(await open_store(url))
    assert set(modes(path.parent).values()) == {0o600}
    for store in (first, second):
        await store.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
async def test_root_uses_another_owners_file_without_taking_it(path: Path) -> None:
    url = f"sqlite:///{path}"
    await migrate(url)
    give_away(path)
    await (await open_store(url)).close()
    assert owner_and_mode(path) == (NOBODY, 0o600)
