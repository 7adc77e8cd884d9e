"""Secrets replaced while the program runs."""

import logging
from pathlib import Path

import pytest
from support.secret_files import SETTING, SecretFileWorld

from bot.app.settings.config import load
from bot.runtime.logging import TextFormatter
from bot.runtime.rotating_secrets import KnownSecrets
from bot.runtime.secrets.masking import SecretMasker

pytestmark = pytest.mark.promise("rotation")

OLD, NEW = "planted-old-secret", "planted-new-secret"
SLACK = {"SLACK_BOT_TOKEN": "xoxb-planted-token", "SLACK_SIGNING_SECRET": "planted0signing0secret"}
JOB_API = {"JOB_API_URL": "https://jobs.example.com", "JOB_API_KEY": "planted-key", "JOB_API_PROJECT": "prj"}


@pytest.fixture
def file(tmp_path: Path) -> SecretFileWorld:
    world = SecretFileWorld(tmp_path)
    world.put(f"{OLD}\n")
    return world


def test_a_replaced_file_is_reloaded(file: SecretFileWorld) -> None:
    secret = file.secret()
    assert [*secret.values] == [OLD]
    file.put(f"{NEW}\n{OLD}\n")
    assert [*secret.values, secret.newest] == [NEW, OLD, NEW]
    file.put(NEW)
    assert [*secret.values] == [NEW]
    assert "planted" not in repr(secret)


def test_a_file_written_in_place_is_reloaded(file: SecretFileWorld) -> None:
    secret = file.secret()
    assert [*secret.values] == [OLD]
    file.path.write_text(f"\ufeff{NEW} {OLD}")  # as Windows writes it
    assert [*secret.values] == [OLD], "it was looked at less than a second ago"
    file.at += 1
    assert [*secret.values] == [NEW, OLD]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "is empty"),
        ("\n", "is empty"),
        ("planted", "must be one or two words"),
        (f"{NEW} {OLD} {OLD}-1", "must be one or two words"),
        (b"\xff\xfeplanted", "it is not text"),
        (None, "No such file"),
    ],
)
def test_an_unusable_file_changes_nothing_and_is_logged_once(
    file: SecretFileWorld, caplog: pytest.LogCaptureFixture, content: str | bytes | None, fault: str
) -> None:
    caplog.set_level(logging.INFO)
    secret = file.secret()
    assert secret.warning() == ""
    if content is None:
        file.remove()
    else:
        file.put(content)
    for _ in range(3):
        assert secret.values == (OLD,)
        file.at += 1
    (logged,) = caplog.messages
    assert logged == secret.warning()
    assert fault in logged
    assert logged.startswith(f"The file that {SETTING} names")
    assert "planted" not in logged
    file.put(NEW)
    assert (secret.values, secret.warning()) == ((NEW,), "")


def test_every_value_that_was_ever_valid_is_masked(file: SecretFileWorld) -> None:
    secret = file.secret()
    known = KnownSecrets(["planted-password"], [secret])
    formatter, masker = TextFormatter(known), SecretMasker(known)
    file.put(NEW)
    assert secret.newest == NEW
    text = f"planted-password {OLD} {NEW}"
    record = logging.LogRecord("bot", logging.INFO, "", 0, text, (), None)
    assert formatter.format(record).endswith("bot: *** *** ***")
    assert "planted" not in masker.mask_own(text)
    assert NEW in known
    assert len(known) == 3


def test_secrets_that_a_thread_adds_end_no_masking() -> None:
    known = KnownSecrets(["planted-first", "planted-second"])
    masking = iter(known)
    next(masking)
    known.add(["planted-third"], [])
    assert list(masking) == ["planted-second"]


def test_each_secret_can_have_two_values_and_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "signing").write_text("planted0new0secret0000\nplanted0signing0secret\n")
    (tmp_path / "api").write_text("planted-new-key\nplanted-old-key\n")
    projects = tmp_path / "projects.toml"
    projects.write_text(
        '[[projects]]\nname = "a"\nproject = "a"\nurl = "https://a.example"\nkey_file = "api"\n'
        '[[projects]]\nname = "b"\nproject = "b"\nkey_variable = "B_KEY"\n'
    )
    environ = SLACK | JOB_API | {"PAGEHAND_PROJECTS": str(projects), "B_KEY_FILE": str(tmp_path / "api")}
    environ |= {"SLACK_SIGNING_SECRET": "", "SLACK_SIGNING_SECRET_FILE": str(tmp_path / "signing")}
    (tmp_path / "metrics").write_text("planted-new-metrics-token\nplanted-old-metrics-token\n")
    environ |= {"PAGEHAND_METRICS_TOKEN_FILE": str(tmp_path / "metrics")}
    config = load(environ)
    (tmp_path / "api").write_text("short")
    assert config.slack_signing_secret is not None
    assert config.slack_signing_secret.values == ("planted0new0secret0000", "planted0signing0secret")
    assert [each.job_api.api_key.values for each in config.projects] == [("planted-new-key", "planted-old-key")] * 2
    assert config.metrics_token is not None
    assert config.metrics_token.values == ("planted-new-metrics-token", "planted-old-metrics-token")
    assert {*config.secrets} >= {"planted0new0secret0000", "planted-old-key", "xoxb-planted-token"}
    assert {*config.secrets} >= {*config.metrics_token.values}
    warnings = [words for secret in config.rotating_secrets if (words := secret.warning())]
    assert [words.split(" is malformed")[0] for words in warnings] == [
        "The file that a key_file of PAGEHAND_PROJECTS names",
        "The file that B_KEY_FILE names",
    ]
