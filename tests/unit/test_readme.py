"""The README names what there is."""

import re
from pathlib import Path

import pytest
import yaml

from bot.cli import main
from bot.config import Config
from bot.jobserver import JobServerSettings

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [str(field.alias) for field in Config.model_fields.values()])
def test_every_setting_is_in_the_table(name: str) -> None:
    assert re.search(rf"^\|[^|]*`{name}`", README, re.MULTILINE)


@pytest.mark.parametrize("name", list(JobServerSettings.model_fields))
def test_every_setting_of_the_job_server_is_in_its_table(name: str) -> None:
    assert re.search(rf"^\|[^|]*`{name.upper()}`", README, re.MULTILINE)


@pytest.mark.parametrize("name", list(main.commands))
def test_every_command_is_shown(name: str) -> None:
    assert f"pagehand {name}" in README


def test_every_scope_and_event_is_explained() -> None:
    manifest = yaml.safe_load((ROOT / "manifest.yml").read_text(encoding="utf-8"))
    scopes = manifest["oauth_config"]["scopes"]["bot"]
    events = manifest["settings"]["event_subscriptions"]["bot_events"]
    assert [name for name in (*scopes, *events) if f"`{name}`" not in README] == []


def test_every_picture_is_there() -> None:
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", README)
    assert pictures
    assert all((ROOT / picture).is_file() for picture in pictures)


def test_what_the_tests_run_with_is_what_is_deployed() -> None:
    deployed, tested = (
        set(re.findall(r"^([a-z0-9._-]+==\S+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))
        for name in ("requirements.txt", "tests/requirements.txt")
    )
    assert deployed < tested
