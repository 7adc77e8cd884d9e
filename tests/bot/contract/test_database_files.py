"""A SQLite database's file: one process at a time, compacted, checked before a migration, and errors about it."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.disks import a_disk, fill, make_read_only

from bot.cli.main import main
from bot.errors import ConfigError, StoreUnavailable
from bot.store.database.errors import classify
from bot.store.database.files import compact, hold_file
from bot.store.schema.migration import SchemaState, known_versions, migrate, schema_state

NEWEST = known_versions()[-1]
HOLDS = """
import sys
from bot.store.database.files import hold_file
with hold_file(sys.argv[1]):
    print("held", flush=True)
    input()
"""


SETTINGS = {
    "SLACK_BOT_TOKEN": "xoxb-planted-token",
    "SLACK_APP_TOKEN": "xapp-planted-token",
    "JOB_API_URL": "http://127.0.0.1:9",
    "JOB_API_KEY": "planted-key",
    "JOB_API_PROJECT": "docs",
}


def pagehand(command: str, file: Path, *options: str) -> Result:
    return CliRunner().invoke(main, [command, *options], env={**SETTINGS, "DATABASE_URL": f"sqlite:///{file}"})


async def made(directory: Path) -> Path:
    file = directory / "pagehand.db"
    await migrate(f"sqlite:///{file}")
    return file


def test_a_file_serves_one_process_at_a_time(tmp_path: Path) -> None:
    file = str(tmp_path / "pagehand.db")
    with subprocess.Popen([sys.executable, "-c", HOLDS, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(StoreUnavailable, match=rf"process {other.pid}\) is using .*pagehand.db"), hold_file(file):
            pass
        other.kill()
    with hold_file(file):
        assert (tmp_path / "pagehand.db.lock").read_text() == f"{os.getpid()}\n"
    with hold_file(None):
        pass


async def test_compacting_gives_space_back_and_keeps_the_rows(tmp_path: Path) -> None:
    file = await made(tmp_path)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE big (text TEXT)")
        database.executemany("INSERT INTO big VALUES (?)", [("x" * 1000,)] * 2000)
        database.execute("DELETE FROM big WHERE rowid > 1")
    done = await compact(f"sqlite:///{file}")
    assert done.before > 2_000_000
    assert done.after == file.stat().st_size < 1_000_000
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("SELECT count(*) FROM big").fetchone() == (1,)
    assert await schema_state(f"sqlite:///{file}") is SchemaState.CURRENT


async def test_compacting_refuses_while_the_file_is_in_use(tmp_path: Path) -> None:
    file = await made(tmp_path)
    with closing(sqlite3.connect(file)) as other:
        other.execute("SELECT count(*) FROM threads").fetchall()
        with pytest.raises(StoreUnavailable, match="a process is using this database"):
            await compact(f"sqlite:///{file}")
    with hold_file(str(file)), pytest.raises(StoreUnavailable, match="is using"):
        await compact(f"sqlite:///{file}")
    with pytest.raises(ConfigError, match="VACUUM FULL"):
        await compact("postgresql://pagehand@localhost/pagehand")


def test_a_check_creates_no_database(tmp_path: Path) -> None:
    absent = pagehand("migrate", tmp_path / "absent.db", "--check")
    assert (absent.exit_code, absent.output.startswith("There is no database yet")) == (1, True)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def database_file(tmp_path: Path, sqlite_template: Path) -> Path:
    return Path(shutil.copy(sqlite_template, tmp_path / "pagehand.db"))


def set_schema(file: Path, version: str, compatible_with: str) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE pagehand_schema SET version_num = ?, compatible_with = ?", (version, compatible_with))


@pytest.mark.parametrize(
    ("version", "compatible_with", "code", "words"),
    [
        (NEWEST, NEWEST, 0, f"The database is up to date: its schema is {NEWEST}."),
        ("9999", NEWEST, 0, "this version can work with it"),
        ("9999", "9999", 1, "Install that version, or restore a backup"),
        ("0001", "0001", 1, "before 1.0"),
        ("0018", "0018", 1, "The database needs a migration: its schema is 0018.\n  0019  The schema says"),
        ("0018", "0018", 1, "Processes of the version before can go on meanwhile."),
        ("0017", "0017", 1, "Stop every process first"),
    ],
)
def test_a_check_distinguishes_what_can_be_fixed(
    database_file: Path, version: str, compatible_with: str, code: int, words: str
) -> None:
    set_schema(database_file, version, compatible_with)
    before = database_file.read_bytes()
    checked = pagehand("migrate", database_file, "--check")
    assert checked.exit_code == code, checked.output
    assert words in checked.output
    assert database_file.read_bytes() == before


def test_an_unwritable_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "pagehand.db").symlink_to(tmp_path / "nowhere" / "pagehand.db")
    failed = pagehand("migrate", tmp_path / "pagehand.db")
    assert failed.exit_code == 1
    assert "could not be made. Check that its directory may be written." in failed.output


def test_a_full_disk_is_reported_when_the_wal_has_no_room() -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    failure = classify(error)
    assert failure is not None
    assert "disk is full" in str(failure.error)


def test_a_full_disk_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    with a_disk(tmp_path / "disk", "2m") as disk:
        file, filler = disk / "pagehand.db", disk / "filler"
        fill(filler)
        for command in ("migrate", "run"):
            failed = pagehand(command, file)
            assert failed.exit_code == 1
            assert "The database's disk is full. Nothing was lost; make room on it." in failed.output
            for left in disk.glob("pagehand.db*"):
                left.unlink()
        filler.unlink()
        assert pagehand("migrate", file).exit_code == 0
        fill(filler)
        before = file.read_bytes()
        failed = pagehand("compact", file)
        assert failed.exit_code == 1
        assert "The database's disk is full. Nothing was lost; make room on it." in failed.output
        assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("command", "existing", "new"),
    [
        ("migrate", "could not be opened", "could not be made"),
        ("run", "could not be opened", "could not be made"),
        ("compact", "must be writable", ""),
    ],
)
def test_a_read_only_disk_is_named(
    tmp_path: Path, sqlite_template: Path, command: str, existing: str, new: str
) -> None:
    with a_disk(tmp_path / "disk", "2m") as disk:
        shutil.copy(sqlite_template, disk / "pagehand.db")
        make_read_only(disk)
        for name, words in (("pagehand.db", existing), ("new.db", new)):
            if words:
                failed = pagehand(command, disk / name)
                assert failed.exit_code == 1
                assert words in failed.output
                assert "directory" in failed.output


def test_a_second_process_on_a_file_is_refused(database_file: Path) -> None:
    with hold_file(str(database_file)):
        refused = pagehand("run", database_file)
    assert refused.exit_code == 1
    assert "and a SQLite database serves one. Stop that one first" in refused.output
