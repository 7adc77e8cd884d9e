"""The database's faults: it is away, cut off, at odds with itself, locked, full, or of another version."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from chaos.faults.world import World, a_world, until
from postgres import NoPostgres, PostgresServer, postgres_server

from bot.app import open_edges
from bot.errors import SchemaMismatch
from bot.slack.listeners.commands import GOT_IT
from bot.slack.recording import LATE, NOT_RECORDED
from bot.store import migrate, schema

pytestmark = pytest.mark.chaos
FINISHED = ("started", "completed")
ACK_SECONDS = 3.0

LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""
"""Holds SQLite's lock till it is told to let go."""

TRIP = """
CREATE SEQUENCE writes;
CREATE FUNCTION trip() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE n bigint := nextval('writes');
BEGIN
    IF n % 20 = 0 THEN
        RAISE EXCEPTION 'tripped' USING ERRCODE =
            CASE WHEN n % 40 = 0 THEN 'serialization_failure' ELSE 'deadlock_detected' END;
    END IF;
    RETURN NULL;
END $$
"""
"""Counts statements that write, whether they are rolled back or not, and makes every twentieth fail: no transaction of
the test has as many, so that each comes through in the end.
"""
TRIPPED = "CREATE TRIGGER trip AFTER INSERT OR UPDATE ON {} FOR EACH STATEMENT EXECUTE FUNCTION trip()"


@pytest.fixture(scope="module")
def own_postgres() -> Iterator[PostgresServer]:
    """A server of these tests' own, for it is stopped and started again."""
    try:
        with postgres_server() as server:
            yield server
    except NoPostgres as error:
        pytest.skip(str(error))


async def asked_in_trouble(world: World, prompt: str) -> str:
    """Asks while the database is in trouble: the answer comes in Slack's time, and in words."""
    clock = asyncio.get_running_loop().time
    begun = clock()
    answer = await world.ask(prompt)
    assert clock() - begun < ACK_SECONDS
    assert answer.text in {GOT_IT, LATE, NOT_RECORDED}
    return answer.text


async def done_or_told(world: World, prompt: str, answer: str) -> None:
    """Whatever the answer to a command was, it was the truth: started, or the person knows that it was not."""

    async def known() -> bool:
        recorded = await world.sql("SELECT id FROM requests WHERE text = :prompt", prompt=prompt)
        return bool(recorded) or NOT_RECORDED in world.told("ana")

    if answer == NOT_RECORDED:
        assert not await world.sql("SELECT id FROM requests WHERE text = :prompt", prompt=prompt)
        return
    await until(known, 20)
    if await world.sql("SELECT id FROM requests WHERE text = :prompt", prompt=prompt):
        await world.until_said(prompt, "started")


@pytest.mark.postgres
async def test_postgresql_is_restarted(own_postgres: PostgresServer) -> None:
    async with own_postgres.database() as url, a_world(url, redeliver_after=ACK_SECONDS) as world:
        await world.start()
        await world.start()
        job, other = await world.begin("Running", "Steered")
        await asyncio.to_thread(own_postgres.stop)
        world.complete(job)
        await world.reply("Steered", "Meanwhile")
        answer = await asked_in_trouble(world, "Asked meanwhile")
        polls = len(world.ledger.polls)
        await asyncio.to_thread(own_postgres.start)
        await world.ledger.until(lambda: len(world.ledger.polls) > polls)
        await world.until_said("Running", *FINISHED)
        await world.ledger.until(lambda: world.ledger.told(other) == ["Meanwhile"])
        await done_or_told(world, "Asked meanwhile", answer)
        await world.settled()
        await world.check()


@pytest.mark.postgres
async def test_connections_to_postgresql_are_cut_again_and_again(postgres: PostgresServer) -> None:
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'pagehand' AND pid <> pg_backend_pid() AND datname = '{}'"
    )
    prompts = [f"Task {number}" for number in range(6)]
    async with postgres.database() as url, a_world(url) as world:
        world.ledger.autopilot(polls=2)
        await world.start()
        await world.start()
        name = str((await world.sql("SELECT current_database()"))[0][0])
        for prompt in prompts:
            answer = await asked_in_trouble(world, prompt)
            assert answer == GOT_IT
            await postgres.run(cut.format(name))
        for prompt in prompts:
            await world.reply(prompt, f"More of {prompt}")
            await postgres.run(cut.format(name))
        await world.until_ended(*prompts)
        await world.settled()
        await world.check()


async def test_a_damaged_row_is_one_job(database_url: str) -> None:
    """Said in its thread, and to whoever replies there; the others go on."""
    async with a_world(database_url) as world:
        await world.start()
        damaged, spared = await world.begin("Damaged", "Spared")
        await world.sql("UPDATE threads SET known = '{' WHERE prompt = 'Damaged'")
        await world.until_said("Damaged", "started", "damaged")
        await world.reply("Damaged", "Go on")
        await world.workspace.wait_for(lambda: "no usable record" in world.told("ana"))
        world.complete(damaged, spared)
        await world.until_said("Spared", *FINISHED)
        assert world.ledger.told(damaged) == []
        assert world.said("Damaged") == ["started", "damaged"]
        await world.stop()


@pytest.mark.postgres
async def test_transactions_that_postgresql_rolls_back(postgres: PostgresServer) -> None:
    """Serialization failures and deadlocks, in every twentieth statement that writes."""
    async with postgres.empty_database() as url:
        await migrate(url)
        async with a_world(url) as world:
            for statement in (*TRIP.split(";\n", 1), *(TRIPPED.format(t) for t in ("requests", "notices", "watches"))):
                await world.sql(statement)
            await world.start()
            world.ledger.autopilot(polls=2)
            for number in range(3):
                await world.ask(f"Task {number}")
            for number in range(3):
                await world.reply(f"Task {number}", f"More of {number}")
            await world.until_ended(*(f"Task {number}" for number in range(3)))
            await world.settled()
            assert (await world.sql("SELECT last_value FROM writes"))[0][0] > 60
            await world.check()
            await world.stop()


async def test_sqlite_is_locked_by_another_process_for_ten_seconds(scratch: Path) -> None:
    file = scratch / "pagehand.sqlite3"
    async with a_world(f"sqlite:///{file}", redeliver_after=ACK_SECONDS) as world:
        await world.start()
        job, other = await world.begin("Running", "Steered")
        async with locked(file):
            until_then = asyncio.get_running_loop().time() + 10.0
            world.complete(job)
            first = await asked_in_trouble(world, "At the beginning")
            await world.reply("Steered", "Meanwhile")
            second = await asked_in_trouble(world, "A little later")
            assert first != GOT_IT
            await asyncio.sleep(until_then - asyncio.get_running_loop().time())
        await world.until_said("Running", *FINISHED)
        await world.ledger.until(lambda: world.ledger.told(other) == ["Meanwhile"])
        await done_or_told(world, "At the beginning", first)
        await done_or_told(world, "A little later", second)
        await world.settled()
        await world.check()


@asynccontextmanager
async def locked(file: Path) -> AsyncIterator[None]:
    """Another process holds the database's lock."""
    pipe = asyncio.subprocess.PIPE
    holder = await asyncio.create_subprocess_exec(sys.executable, "-c", LOCK, str(file), stdin=pipe, stdout=pipe)
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"locked\n"
    try:
        yield
    finally:
        await holder.communicate(b"\n")


@pytest.fixture
def small_disk(scratch: Path) -> Iterator[Path]:
    """A disk of its own, of 2 MB, in memory."""
    disk = scratch / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("a full disk is left out: this user may not mount one")
    yield disk
    subprocess.run(["umount", disk], check=True)


async def test_the_disk_is_full_and_gets_room_again(small_disk: Path) -> None:
    filler = small_disk / "filler"
    async with a_world(f"sqlite:///{small_disk}/pagehand.sqlite3", redeliver_after=ACK_SECONDS) as world:
        await world.start()
        job, other = await world.begin("Running", "Steered")
        fill(filler)
        answer, number = GOT_IT, 0
        while answer == GOT_IT:  # what SQLite's log had room for is still taken
            number += 1
            answer = await asked_in_trouble(world, f"Number {number} " + "x" * 2_000)
        assert answer == NOT_RECORDED
        world.complete(job)
        await world.reply("Steered", "Meanwhile " + "x" * 2_000)
        words = world.replied[-1]
        await world.workspace.wait_for(lambda: any(d.attempts > 1 for d in world.workspace.deliveries))
        assert world.ledger.told(other) == []
        filler.unlink()
        await world.until_said("Running", *FINISHED)
        await world.ledger.until(lambda: world.ledger.told(other) == [words])
        await world.settled()
        await world.check()


def fill(filler: Path) -> None:
    """Writes till nothing more fits."""
    with filler.open("wb", buffering=0) as file:
        for size in (65_536, 4_096, 512, 1):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                continue


# -- versions -------------------------------------------------------------------------------------------------------


def run_pagehand(world: World) -> subprocess.CompletedProcess[str]:
    """`pagehand run`, as its operator sees it."""
    config = world.config()
    environment = {
        "PATH": os.environ["PATH"],
        "SLACK_BOT_TOKEN": config.slack_bot_token.get_secret_value(),
        "SLACK_APP_TOKEN": world.workspace.app_token,
        "SLACK_API_URL": world.workspace.api_url,
        "JOB_API_URL": world.ledger.url,
        "JOB_API_KEY": config.job_api_key.get_secret_value(),
        "JOB_API_PROJECT": config.job_api_project,
        "DATABASE_URL": world.database_url,
    }
    command = [sys.executable, "-m", "bot", "run"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


async def test_a_database_of_a_newer_version_is_refused_in_words(database_url: str) -> None:
    await migrate(database_url)
    async with a_world(database_url) as world:
        ((today,),) = await world.sql("SELECT version_num FROM pagehand_schema")
        await world.sql("UPDATE pagehand_schema SET version_num = '9999_from_tomorrow'")
        ended = await asyncio.to_thread(run_pagehand, world)
        await world.sql("UPDATE pagehand_schema SET version_num = :today", today=today)  # others get this database next
        assert ended.returncode == 1
        assert "newer version" in ended.stderr
        assert "Traceback" not in ended.stderr
        assert not world.workspace.calls


NEXT_MIGRATION = """
revision = "9999"
down_revision = {head!r}


def upgrade() -> None:
    pass
"""


@pytest.fixture
def next_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on this program is of the version after: today's databases are older."""
    here = Path(schema.__file__).parent / "migrations"
    for file in (here / "env.py", *(here / "versions").glob("*.py")):
        copy = tmp_path / "migrations" / file.relative_to(here)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(file.read_text())
    head = ScriptDirectory.from_config(schema._config()).get_current_head()
    (tmp_path / "migrations/versions/9999_next.py").write_text(NEXT_MIGRATION.format(head=head))

    def next_config() -> Config:
        config = Config()
        config.set_main_option("script_location", str(tmp_path / "migrations"))
        config.set_main_option("path_separator", "os")
        return config

    monkeypatch.setattr(schema, "_config", next_config)


@pytest.mark.postgres
async def test_an_older_postgresql_is_refused_in_words(
    postgres: PostgresServer, request: pytest.FixtureRequest
) -> None:
    async with postgres.database() as url, a_world(url) as world:
        request.getfixturevalue("next_version")
        with pytest.raises(SchemaMismatch, match="pagehand migrate"):
            await open_edges(world.config())
        assert not world.workspace.calls


async def test_an_older_sqlite_is_brought_up_to_date(sqlite_url: str, request: pytest.FixtureRequest) -> None:
    await migrate(sqlite_url)
    request.getfixturevalue("next_version")
    async with a_world(sqlite_url) as world:
        await world.start()
        assert await world.sql("SELECT version_num FROM pagehand_schema") == [("9999",)]
        await world.begin("It works")
