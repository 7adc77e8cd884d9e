"""Two versions of Pagehand on one database: the older one keeps working, and leaves alone what
only the newer one knows.
"""

import logging
import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from support.fakes.ports import FakeClock
from support.worlds.store_world import (
    CARD,
    Sql,
    StoreWorld,
    a_follow_up,
    a_post,
    a_start,
    a_thread,
    run_sql,
)

from bot.app.edges import migrate_at_start, open_current_store
from bot.domain.requests.request import RejectionReason, RequestState
from bot.domain.threads.thread import ThreadState
from bot.errors import SchemaMismatch
from bot.jobapi.models import Job
from bot.notices.notice import UnknownNotice
from bot.queue.migration import Schema, SchemaState
from bot.scheduler.retention import DAY, RetentionSweeper
from bot.store.backup import backup
from bot.store.claims import PATIENCE
from bot.store.schema.migration import SCHEMA, known_versions, migrate, schema_state
from bot.store.store import open_store

pytestmark = pytest.mark.promise("upgrades")

NEWEST = known_versions()[-1]
NEXT = f"{int(NEWEST) + 1:04}"
NEWER = f"""
import sqlalchemy as sa
from alembic import op

revision = "{NEXT}"
down_revision = "{NEWEST}"
compatible_with = "%s"


def upgrade() -> None:
    op.add_column("threads", sa.Column("note", sa.Text(), nullable=False, server_default="none"))
    op.create_table("news", sa.Column("id", sa.Text(), primary_key=True))
"""


def newer_migrations(folder: Path, compatible_with: str = NEXT) -> Schema:
    """The migrations of the next version of Pagehand."""
    made = folder / "migrations"
    (made / "versions").mkdir(parents=True)
    for file in SCHEMA.migrations.glob("**/*.py"):
        (made / file.relative_to(SCHEMA.migrations)).symlink_to(file)
    (made / "versions" / f"{NEXT}_news.py").write_text(NEWER % compatible_with)
    return replace(SCHEMA, migrations=made)


def test_the_listed_versions_match_the_migrations(tmp_path: Path) -> None:
    """They are read from the file names, so that a start need not import Alembic."""
    newer = newer_migrations(tmp_path)
    script = ScriptDirectory(str(newer.migrations))
    assert newer.known_versions() == [revision.revision for revision in script.walk_revisions()][::-1]
    assert newer.known_versions()[-1] == script.get_current_head()


async def test_an_older_database_keeps_its_rows(empty_database: str, tmp_path: Path) -> None:
    newer = newer_migrations(tmp_path)
    await migrate(empty_database)
    store = StoreWorld(await open_store(empty_database))
    await store.add(a_thread("t1"), a_start("t1"))
    await store.close()
    assert await newer.state(empty_database) is SchemaState.OLDER
    await newer.migrate(empty_database)
    assert await newer.state(empty_database) is SchemaState.CURRENT
    assert await run_sql(empty_database, "SELECT id, note FROM threads") == [("t1", "none")]


async def test_at_start_an_older_file_is_migrated_but_not_a_shared_database(
    empty_database: str, server: object, tmp_path: Path
) -> None:
    newer = newer_migrations(tmp_path)
    await migrate_at_start(empty_database, newer)
    assert await newer.state(empty_database) is SchemaState.CURRENT
    for statement in ("ALTER TABLE threads DROP COLUMN note", "DROP TABLE news"):
        await run_sql(empty_database, statement)
    await run_sql(empty_database, "UPDATE pagehand_schema SET version_num = :version", version=NEWEST)
    with pytest.raises(SchemaMismatch, match="pagehand migrate") if server else nullcontext():
        await migrate_at_start(empty_database, newer)
    state = await newer.state(empty_database)
    assert state is (SchemaState.OLDER if server else SchemaState.CURRENT)


async def test_a_schema_expanded_by_a_newer_version_still_works(empty_database: str, tmp_path: Path) -> None:
    await migrate(empty_database)
    before = StoreWorld(await open_current_store(empty_database))
    await newer_migrations(tmp_path, NEWEST).migrate(empty_database)
    await before.watched("t1")
    await before.close()
    assert await schema_state(empty_database) is SchemaState.COMPATIBLE
    await migrate_at_start(empty_database)
    await migrate(empty_database)
    started = StoreWorld(await open_current_store(empty_database))
    await started.add(a_thread("t2", ts="2.1"), a_start("t2"), say=[a_post("a")])
    assert [each.request.id for each in await started.claim_requests()] == ["t2-start"]
    await started.close()
    assert await schema_state(empty_database) is SchemaState.COMPATIBLE


async def test_a_schema_that_requires_a_newer_version_is_refused(empty_database: str, tmp_path: Path) -> None:
    newer = newer_migrations(tmp_path)
    await newer.migrate(empty_database)
    assert await newer.state(empty_database) is SchemaState.CURRENT
    assert await schema_state(empty_database) is SchemaState.NEWER
    for opening in (open_store, open_current_store, migrate):
        with pytest.raises(SchemaMismatch, match="newer version"):
            await opening(empty_database)


async def test_a_restored_copy_of_a_newer_database_is_put_in_doubt(tmp_path: Path) -> None:
    url, doubted = f"sqlite:///{tmp_path}/pagehand.db", list[str]()
    await newer_migrations(tmp_path, NEWEST).migrate(url)

    async def mark_in_doubt(copy: str) -> None:
        doubted.append(copy)

    await backup(url, tmp_path / "copy.db", mark_in_doubt=mark_in_doubt)
    assert len(doubted) == 1, "before it has its name"
    assert await schema_state(f"sqlite:///{tmp_path}/copy.db") is SchemaState.COMPATIBLE


@pytest.mark.either_database
async def test_a_request_of_a_newer_kind_is_left_to_newer_instances(
    store: StoreWorld, sql: Sql, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    await store.watched("t1")
    newer, known = (a_follow_up(each, state=RequestState.RECEIVED) for each in ("1", "2"))
    await store.add(newer, known)
    await sql("UPDATE requests SET recorded_at = :now", now=clock.now())
    await sql("UPDATE requests SET kind = 'teleport' WHERE id = :id", id=newer.id)
    assert [each.request.id for _ in range(3) for each in await store.claim_received()] == [known.id]
    [row] = await sql("SELECT state, attempts, claimed_by FROM requests WHERE id = :id", id=newer.id)
    assert row == ("received", 0, None)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "Requests of a newer version of Pagehand are left to it (teleport)."
    ]
    clock.advance(PATIENCE)
    assert newer.id not in [each.request.id for each in await store.claim_received()]
    assert await sql("SELECT state FROM requests WHERE id = :id", id=newer.id) == [("rejected",)]


def test_1_0_0_can_read_each_reason_of_a_rejection() -> None:
    """Those of its own: any other would cost it the notice, or the thread in whose state it waits for a poll."""
    assert {*RejectionReason} == {
        "accepted_while_archived", "address", "api", "archived", "gone", "not_found", "not_permitted", "not_started",
        "nothing_to_stop", "other", "project", "replaced", "stopped", "too_old", "unreadable",
    }  # fmt: skip


@pytest.mark.either_database
async def test_a_notice_of_a_newer_kind_is_left_to_newer_ones_in_order(
    store: StoreWorld, sql: Sql, clock: FakeClock
) -> None:
    await store.add(a_thread("t1", ts="1.1"), say=[a_post("a"), a_post("b")])
    await store.add(a_thread("t2", ts="2.1"), say=[a_post("a")])
    await sql("""UPDATE notices SET message = '{"kind": "shrug"}' WHERE key = 't1/a'""")
    assert [each.notice.key for _ in range(3) for each in await store.claim_notices()] == ["t2/a"]
    assert await sql("SELECT state, attempts, claimed_by FROM notices WHERE key = 't1/a'") == [("waiting", 0, None)]
    clock.advance(PATIENCE)
    said = {each.notice.key: each.notice.message for each in await store.claim_notices()}
    assert said["t1/a"] == UnknownNotice("shrug", {})


@pytest.mark.either_database
async def test_a_newer_card_is_kept_until_this_version_changes_it(
    store: StoreWorld, sql: Sql, clock: FakeClock
) -> None:
    await store.add(a_thread("t1", ts="1.1"), say=[CARD])
    await sql("""UPDATE notices SET message = '{"kind": "shrug"}'""")
    clock.advance(2 * PATIENCE)
    assert await store.claim_notices() == []
    await store.transact(lambda tx: tx.notices.add("t1", CARD))
    assert [each.notice.key for each in await store.claim_notices()] == ["t1/card"]


@pytest.mark.either_database
async def test_links_that_an_earlier_version_recorded_are_followed_at_the_next_sweep(
    store: StoreWorld, sql: Sql, clock: FakeClock
) -> None:
    """It runs beside this one during an upgrade, and follows none. What it recorded long ago was adopted."""

    async def recorded(name: str, link: str | None) -> None:
        await store.add(a_thread(name, ts=f"{name}.1", state=ThreadState(job=Job(name, "completed", link))))

    await recorded("old", "https://git.example/old")
    clock.advance(DAY)
    clock.advance(1)
    for number in range(20):
        await recorded(f"t{number:02}", f"https://git.example/{number}")
    await recorded("none", None)
    for name in ("damaged", "worse"):
        await recorded(name, "https://git.example/damaged")
    await sql("UPDATE threads SET state = state || '{' WHERE id = 'damaged'")
    await sql("UPDATE threads SET options = options || '{' WHERE id = 'worse'")
    await store.save("t00", ThreadState(job=Job("t00", "completed", "https://git.example/known")), poll_in=None)
    await RetentionSweeper(store.store).sweep()
    rows = await sql("SELECT thread_id, link, due_at FROM pull_requests ORDER BY thread_id")
    assert rows == [
        ("t00", "https://git.example/known", clock.now()),
        *((f"t{number:02}", f"https://git.example/{number}", clock.now()) for number in range(1, 20)),
    ]
    await RetentionSweeper(store.store).sweep()
    assert await sql("SELECT count(*) FROM pull_requests") == [(20,)]


EXPANDS = (
    r"CREATE TABLE .*",
    r"CREATE (UNIQUE )?INDEX .*",
    r"ALTER TABLE \w+ ADD COLUMN \w+ \w+( PRECISION)?( DEFAULT .* NOT NULL)?",
    r"INSERT INTO pull_requests .*",  # a table of its own, which the same migration creates
    r"ALTER TABLE \w+ DROP CONSTRAINT IF EXISTS ck_\w+",
    r"PRAGMA writable_schema = (ON|RESET)|UPDATE sqlite_master .* WHERE name = 'requests' AND .*",  # the same
)


def statements_of(version: str, dialect: str) -> Sequence[str]:
    """The SQL of a migration."""
    out = StringIO()
    context = MigrationContext.configure(dialect_name=dialect, opts={"as_sql": True, "output_buffer": out})
    with Operations.context(context):
        ScriptDirectory(str(SCHEMA.migrations)).get_revision(version).module.upgrade()
    return [" ".join(each.split()) for each in out.getvalue().split(";") if each.strip()]


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_a_migration_marked_as_expanding_only_expands(dialect: str) -> None:
    script = ScriptDirectory(str(SCHEMA.migrations))
    expanding = [
        version
        for version in known_versions()
        if getattr(script.get_revision(version).module, "compatible_with", version) != version
    ]
    assert expanding, "or nothing is tested"
    for version in expanding:
        for statement in statements_of(version, dialect):
            assert any(re.fullmatch(allowed, statement) for allowed in EXPANDS), f"{version}: {statement}"
