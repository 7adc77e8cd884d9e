from pathlib import Path

import pytest

from bot.config import load
from bot.errors import ConfigError

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


def test_all_that_is_missing_is_listed_at_once_with_where_to_get_it() -> None:
    listed = faults({})
    assert [fault.split()[0] for fault in listed] == [
        "JOB_API_KEY",
        "JOB_API_PROJECT",
        "JOB_API_URL",
        "SLACK_APP_TOKEN",
        "SLACK_BOT_TOKEN",
    ]
    assert all("is missing" in fault for fault in listed)


def test_one_way_to_receive_is_needed() -> None:
    assert "SLACK_APP_TOKEN is missing" in faults({**COMPLETE, "SLACK_APP_TOKEN": ""})[0]
    assert load({**COMPLETE, "SLACK_APP_TOKEN": "", "SLACK_SIGNING_SECRET": "s"}).slack_app_token is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SLACK_BOT_TOKEN", "xapp-planted-app"),
        ("SLACK_APP_TOKEN", "xoxb-planted-bot"),
        ("JOB_API_URL", "jobs.example.org"),
        ("JOB_API_URL", "ftp://jobs.example.org"),
        ("JOB_API_GET_PATH", "/v2/job"),
        ("JOB_API_TIMEOUT", "planted"),
        ("PAGEHAND_COMMAND", "docs"),
        ("PORT", "99999"),
        ("PAGEHAND_LOG_LEVEL", "LOUD"),
    ],
)
def test_a_malformed_setting_is_named_and_never_quoted(name: str, value: str) -> None:
    (fault,) = faults({**COMPLETE, name: value})
    assert fault.startswith(name)
    assert "planted" not in fault


def test_a_secret_can_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from-file\n")
    environ = {**COMPLETE, "JOB_API_KEY": "", "JOB_API_KEY_FILE": str(file)}
    assert load(environ).job_api_key.get_secret_value() == "from-file"
    assert "can't be read" in faults({**environ, "JOB_API_KEY_FILE": str(tmp_path / "none")})[-1]


def test_secrets_show_in_no_repr() -> None:
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
def test_a_databases_password_is_known_to_the_log_even_where_its_url_cannot_be_used(url: str) -> None:
    assert "planted-password" in load({**COMPLETE, "DATABASE_URL": url}).secrets


def test_a_password_with_unencoded_characters_is_known_to_the_log_as_a_whole() -> None:
    assert "a@b/c" in load({**COMPLETE, "DATABASE_URL": "postgresql://pagehand:a@b/c@db/pagehand"}).secrets
