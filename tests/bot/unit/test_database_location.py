"""A database that is a file: where it is refused, and with which message."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from bot.cli.database_location import PLATFORMS, lost_file_fault, unshared_file_fault
from bot.cli.main import main

FILE, POSTGRES = "sqlite:////data/pagehand.sqlite3", "postgresql://user:planted@host/name"
ROOT = "overlay / overlay rw,relatime 0 0\n"
DISK = ROOT + "/dev/vdb /data ext4 rw,relatime 0 0\n"
IN_MEMORY = ROOT + "tmpfs /data tmpfs rw 0 0\n"
SETTINGS = {
    "SLACK_BOT_TOKEN": "xoxb-planted",
    "SLACK_SIGNING_SECRET": "planted-signing-secret",
    "JOB_API_URL": "http://127.0.0.1:9",
    "JOB_API_KEY": "planted-key",
    "JOB_API_PROJECT": "docs",
}


@pytest.mark.parametrize("variable", PLATFORMS)
def test_a_file_on_ephemeral_storage_is_refused(variable: str) -> None:
    (name, has_disks), given = PLATFORMS[variable], {variable: "anything"}
    for mounts in (ROOT, IN_MEMORY, ""):
        words = lost_file_fault(FILE, given, mounts)
        assert words is not None
        assert words.startswith("DATABASE_URL names a file")
        assert f"{name} deletes files" in words
        assert ("persistent disk" in words) is has_disks
    assert bool(lost_file_fault(FILE, given, DISK)) is not has_disks
    assert lost_file_fault(POSTGRES, given, ROOT) is None


def test_a_file_on_persistent_storage_is_accepted() -> None:
    assert lost_file_fault(FILE, {"DYNO": "", "HOME": "/root"}, ROOT) is None


@pytest.mark.parametrize(
    "url", ["sqlite:///pagehand.sqlite3", "sqlite+aiosqlite:////data/x", "SQLITE:///x", "sqlite://["]
)
def test_a_shared_file_is_refused(url: str) -> None:
    assert "`pagehand run`, which does everything in one process" in (unshared_file_fault(url, "web") or "")
    assert unshared_file_fault(POSTGRES, "web") is None


@pytest.mark.parametrize("command", ["web", "worker"])
def test_single_roles_do_not_start_with_a_file(command: str) -> None:
    ended = CliRunner().invoke(main, [command], env=SETTINGS | {"DATABASE_URL": ""})
    assert ended.exit_code == 2
    assert f"`pagehand {command}` shares its database with other processes" in ended.stderr
    assert "planted" not in ended.output


def test_other_errors_are_listed_along_with_it() -> None:
    ended = CliRunner().invoke(main, ["web"], env=SETTINGS | {"DATABASE_URL": "", "JOB_API_KEY": ""})
    assert "JOB_API_KEY is missing" in ended.stderr
    assert "shares its database with other processes" in ended.stderr


def test_every_command_reads_the_database_url_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = tmp_path / "database-url"
    named.write_text(f"sqlite:///{tmp_path}/pagehand.sqlite3\n")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    given = {"DATABASE_URL": "", "DATABASE_URL_FILE": str(named)}
    assert CliRunner().invoke(main, ["migrate"], env=given).exit_code == 0
    lost = CliRunner().invoke(main, ["migrate"], env=given | {"DATABASE_URL_FILE": "/nowhere"})
    assert list(here.iterdir()) == [], "none is made where none was named"
    assert (tmp_path / "pagehand.sqlite3").exists()
    assert lost.exit_code == 2
    assert "DATABASE_URL_FILE names a file that cannot be read" in lost.stderr


@pytest.mark.parametrize("command", ["run", "migrate"])
def test_no_role_starts_with_a_file_on_ephemeral_storage(command: str) -> None:
    ended = CliRunner().invoke(main, [command], env=SETTINGS | {"DATABASE_URL": "", "DYNO": "worker.1"})
    assert ended.exit_code == 2
    assert "Heroku deletes files" in ended.stderr
    assert "planted" not in ended.output
