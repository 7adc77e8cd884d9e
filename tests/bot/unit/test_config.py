import logging
import re
from pathlib import Path

import pytest

from bot.app.settings.config import load, passwords_in
from bot.errors import ConfigError
from bot.runtime.logging import TextFormatter
from bot.slack.rendering.message_context import MessageContext

COMPLETE = {
    "SLACK_BOT_TOKEN": "xoxb-planted-bot",
    "SLACK_APP_TOKEN": "xapp-planted-app",
    "JOB_API_URL": "https://jobs.example.org/",
    "JOB_API_KEY": "planted-key",
    "JOB_API_PROJECT": "docs",
}


def faults(environ: dict[str, str]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(environ)
    return caught.value.faults


def test_five_settings_are_enough() -> None:
    config = load(COMPLETE)
    assert config.job_api_url == "https://jobs.example.org"
    assert config.database_url.get_secret_value().startswith("sqlite")
    assert config.keep_days == 90


def test_all_missing_settings_are_listed_with_where_to_get_them() -> None:
    listed = faults({})
    assert [fault.split()[0] for fault in listed] == [
        "JOB_API_KEY",
        "JOB_API_PROJECT",
        "JOB_API_URL",
        "SLACK_APP_TOKEN",
        "SLACK_BOT_TOKEN",
    ]
    assert all("is missing" in fault for fault in listed)


def test_one_transport_is_required() -> None:
    (fault,) = faults({**COMPLETE, "SLACK_APP_TOKEN": ""})
    assert "SLACK_APP_TOKEN is missing" in fault
    assert fault.count("Socket Mode") == 1
    assert (
        load({**COMPLETE, "SLACK_APP_TOKEN": "", "SLACK_SIGNING_SECRET": "planted-signing-secret"}).slack_app_token
        is None
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SLACK_BOT_TOKEN", "xapp-planted-app"),
        ("SLACK_APP_TOKEN", "xoxb-planted-bot"),
        ("JOB_API_URL", "ftp://jobs.example.org"),
        ("SLACK_BOT_TOKEN", "xoxb-planted two words"),
        ("SLACK_APP_TOKEN", "xapp-1"),
        ("SLACK_SIGNING_SECRET", "planted"),
        ("SLACK_SIGNING_SECRET", "xoxb-planted-bot-token"),
        ("SLACK_API_URL", "https://user:planted@slack.com/api"),
        ("JOB_API_URL", "https://user:planted@jobs.example.org"),
        ("JOB_API_URL", "https://jobs.example.org/?key=planted"),
        ("JOB_API_KEY", "planted two words"),
        ("JOB_API_KEY", "planté-planté"),
        ("JOB_API_GET_PATH", "/v2/job"),
        ("JOB_API_GET_PATH", "/v2/{planted}/{id}"),
        ("JOB_API_PROJECT", ".."),
        ("PAGEHAND_HOST", "planted host"),
        ("PAGEHAND_HEALTH_HOST", "http://planted"),
        ("PAGEHAND_COMMAND", "/docs\tplanted"),
        ("DATABASE_URL", "planted"),
        ("DATABASE_URL", "oracle://user:planted@db/name"),
        ("DATABASE_URL", "sqlite://"),
        ("DATABASE_URL", "sqlite:///:memory:"),
        ("DATABASE_URL", "sqlite:////nowhere/at/all.sqlite3"),
        ("DATABASE_URL", f"sqlite:////tmp/{'planted' * 50}"),
        ("DATABASE_URL", "postgresql://user:planted@db:port/name"),
        ("DATABASE_URL", "postgresql://user:planted@one:5432,two:99999/name"),
        ("DATABASE_URL", "postgresql://db/name?planted"),
        ("DATABASE_URL", "postgresql://user:plan@ted@db/name"),
        ("JOB_API_IDEMPOTENT", "planted"),
        ("PAGEHAND_ADMIN", "planted" * 20),
        ("JOB_API_TIMEOUT", "planted"),
        ("PAGEHAND_COMMAND", "docs"),
        ("PAGEHAND_REPLIES", "planted"),
        ("PAGEHAND_MERGE_SECONDS", "-1"),
        ("PAGEHAND_HOURLY_LIMIT", "planted"),
        ("PAGEHAND_ALLOWED_PEOPLE", "U1, planted"),
        ("PAGEHAND_ALLOWED_CHANNELS", "#planted"),
        ("PORT", "99999"),
        ("PAGEHAND_LOG_LEVEL", "LOUD"),
    ],
)
def test_a_malformed_setting_is_named_without_its_value(name: str, value: str) -> None:
    (fault,) = faults({**COMPLETE, name: value})
    assert fault.startswith(name)
    assert "planted" not in fault
    assert not re.search("input|string|pattern", fault, re.IGNORECASE), "these are words for programmers"


def test_values_that_any_part_refuses_are_listed_at_once() -> None:
    malformed = {
        "SLACK_SIGNING_SECRET": "s",
        "JOB_API_URL": "https://u:p@jobs.example.org",
        "JOB_API_KEY": "two words",
        "JOB_API_GET_PATH": "//x/{id}",
        "DATABASE_URL": "mysql://db/name",
        "PAGEHAND_POLL_FASTEST": "20",
        "PAGEHAND_POLL_SLOWEST": "10",
    }
    listed = "\n".join(faults({**COMPLETE, **malformed}))
    assert [name for name in malformed if name not in listed] == []


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "ALL_PROXY"])
def test_an_invalid_proxy_is_listed_with_the_rest(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for other in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(other, raising=False)
        monkeypatch.delenv(other.upper(), raising=False)
    monkeypatch.setenv(name, "socks5://user:planted@proxy.example:1080")
    fault, other = faults({**COMPLETE, "JOB_API_KEY": ""})
    assert "JOB_API_KEY is missing" in fault + other
    assert "HTTPS_PROXY, ALL_PROXY" in fault + other
    assert "planted" not in fault + other
    load({**COMPLETE, "JOB_API_URL": "http://127.0.0.1:1", "SLACK_API_URL": "http://127.0.0.1:2"})


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://jobs.example.org", True),
        ("http://10.0.0.7:8765", True),
        ("http://127.0.0.1:8765", False),
        ("http://[::1]:8765", False),
        ("http://localhost:8765", False),
        ("https://jobs.example.org", False),
    ],
)
def test_sending_a_secret_in_plain_text_is_warned_about(url: str, *, warned: bool) -> None:
    assert len(load({**COMPLETE, "JOB_API_URL": url}).warnings) == warned
    assert len(load({**COMPLETE, "SLACK_API_URL": url}).warnings) == warned


def test_values_long_enough_to_be_secrets_are_masked_in_the_log() -> None:
    config = load({**COMPLETE, "DATABASE_URL": "postgresql://pagehand:a@db/pagehand"})
    record = logging.LogRecord("bot", logging.INFO, "", 0, "a database at planted-key", (), None)
    assert TextFormatter(config.secrets).format(record).endswith("bot: a database at ***")


def test_a_secret_can_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from-file\n")
    environ = {**COMPLETE, "JOB_API_KEY": "", "JOB_API_KEY_FILE": str(file)}
    assert load(environ).projects[0].job_api.api_key.newest == "from-file"
    (fault,) = faults({**environ, "JOB_API_KEY_FILE": str(tmp_path / "none")})
    assert fault.startswith("JOB_API_KEY_FILE names a file that cannot be read: No such file")
    file.write_bytes(b"\xff\xfeplanted")
    (fault,) = faults(environ)
    assert fault == "JOB_API_KEY_FILE names a file that cannot be read: it is not text"


def test_settings_behind_an_unreadable_file_are_not_called_missing() -> None:
    environ = {**COMPLETE, "SLACK_APP_TOKEN": "", "SLACK_SIGNING_SECRET_FILE": "/nowhere"}
    assert faults(environ) == ["SLACK_SIGNING_SECRET_FILE names a file that cannot be read: No such file or directory"]
    assert faults({**COMPLETE, "SLACK_APP_TOKEN_FILE": "/nowhere", "SLACK_APP_TOKEN": ""}) == [
        "SLACK_APP_TOKEN_FILE names a file that cannot be read: No such file or directory"
    ]


def test_no_repr_shows_a_secret() -> None:
    config = load({**COMPLETE, "DATABASE_URL": "postgresql://pagehand:planted-password@db/pagehand"})
    assert "planted" not in repr(config)
    assert "planted" not in str(config)
    assert sorted(config.secrets) == ["planted-key", "planted-password", "xapp-planted-app", "xoxb-planted-bot"]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://pagehand:planted-password@db:5432/pagehand",
        "postgresql://pagehand:planted%2Dpassword@db/pagehand",
        "postgresql://pagehand:planted-password@db:port/pagehand",
        "postgresql://pagehand:planted-password@[::1/pagehand",
        "postgresql://db/pagehand?user=pagehand&password=planted-password",
    ],
)
def test_a_database_password_is_masked_even_if_its_url_is_invalid(url: str) -> None:
    assert "planted-password" in passwords_in(url)


def test_a_password_with_unencoded_characters_is_masked_as_a_whole() -> None:
    assert "a@b/c" in load({**COMPLETE, "DATABASE_URL": "postgresql://pagehand:a@b/c@db/pagehand"}).secrets


def test_an_administrator_is_mentioned_and_a_channel_linked() -> None:
    shown = [MessageContext(admin=admin).ask for admin in ("U0123ABCD", "C0123ABCD", "the CEO")]
    assert shown == ["<@U0123ABCD>", "<#C0123ABCD>", "the CEO"]
