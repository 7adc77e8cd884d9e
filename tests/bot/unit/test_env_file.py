"""Settings files: what is read, and what writing preserves."""

import logging
from io import StringIO
from pathlib import Path

import pytest
from dotenv import dotenv_values
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import ConfigError
from bot.runtime.env_file import add_env_file, env_line, read_env_file, write_env_file

WRITTEN = """# Slack
SLACK_BOT_TOKEN=xoxb-old-token

export JOB_API_KEY='a key with $HOME and # in it' # of the docs
EMPTY=
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / ".env"
    file.write_text(WRITTEN)
    file.chmod(0o600)
    return file


def test_values_are_read_literally(file: Path) -> None:
    assert read_env_file(file) == {
        "SLACK_BOT_TOKEN": "xoxb-old-token",
        "JOB_API_KEY": "a key with $HOME and # in it",
        "EMPTY": "",
    }


def test_the_environment_wins(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    environ = {"SLACK_BOT_TOKEN": "xoxb-of-the-environment"}
    with caplog.at_level(logging.WARNING):
        add_env_file(environ, file)
    assert environ["SLACK_BOT_TOKEN"] == "xoxb-of-the-environment"
    assert environ["JOB_API_KEY"] == "a key with $HOME and # in it"
    assert caplog.text == ""


def test_a_world_readable_file_is_warned_about_and_used(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    file.chmod(0o644)
    environ: dict[str, str] = {}
    with caplog.at_level(logging.WARNING):
        add_env_file(environ, file)
    assert f"chmod 600 {file}" in caplog.text
    assert "xoxb-" not in caplog.text
    assert len(environ) == 3


@pytest.mark.parametrize("line", ["SLACK_BOT_TOKEN: xoxb-planted", "JOB_API_KEY", "A='xoxb-planted"])
def test_an_invalid_line_is_named_by_its_number_only(file: Path, line: str) -> None:
    file.write_text(f"A=1\n\n{line}\n")
    with pytest.raises(ConfigError, match="line 3 is not NAME=value") as caught:
        read_env_file(file)
    assert "planted" not in str(caught.value)


def test_writing_replaces_values_in_place_and_keeps_the_rest(file: Path) -> None:
    write_env_file(file, {"JOB_API_KEY": "new key", "JOB_API_URL": "https://jobs.example.org"})
    assert file.read_text() == (
        "# Slack\nSLACK_BOT_TOKEN=xoxb-old-token\n\nJOB_API_KEY='new key'\nEMPTY=\nJOB_API_URL=https://jobs.example.org\n"
    )


def test_a_written_file_is_readable_only_by_its_owner(file: Path, tmp_path: Path) -> None:
    file.chmod(0o644)
    write_env_file(file, {"A": "1"})
    write_env_file(tmp_path / "new.env", {"A": "1"})
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()} == {
        ".env": "0o600",
        "new.env": "0o600",
    }


def test_a_failed_write_keeps_the_old_file(file: Path, tmp_path: Path) -> None:
    directory = tmp_path / "taken.env"
    directory.mkdir()
    (directory / "x").touch()
    with pytest.raises(OSError, match="taken"):
        write_env_file(directory, {"A": "1"})
    with pytest.raises(ConfigError):
        write_env_file(_binary(tmp_path), {"A": "1"})
    assert sorted(path.name for path in tmp_path.iterdir()) == [".env", "binary.env", "taken.env"]


def _binary(folder: Path) -> Path:
    file = folder / "binary.env"
    file.write_bytes(b"A=\xff\n")
    return file


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="\u2028\u2029")))
def test_every_value_round_trips(value: str) -> None:
    assert dotenv_values(stream=StringIO(env_line("NAME", value)), interpolate=False) == {"NAME": value}
