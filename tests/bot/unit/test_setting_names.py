"""Variables that are no settings: almost one stops the start, others are warned of, and Kubernetes' are left alone."""

from pathlib import Path

import pytest

from bot.app.checks.settings import check_settings
from bot.app.settings.config import load, setting_names
from bot.cli.jobserver import job_server_settings
from bot.cli.jobserver import setting_names as job_server_names
from bot.errors import ConfigError

pytestmark = pytest.mark.promise("setting names")

COMPLETE = {
    "SLACK_BOT_TOKEN": "xoxb-planted-bot",
    "SLACK_APP_TOKEN": "xapp-planted-app",
    "JOB_API_URL": "https://jobs.example.org/",
    "JOB_API_KEY": "planted-key",
    "JOB_API_PROJECT": "docs",
}
JOB_SERVER = {"PAGEHAND_JOBSERVER_REPOSITORY": "/srv/docs", "PAGEHAND_JOBSERVER_API_KEY": "planted-key-of-a-server"}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("PAGEHAND_ALLOWED_CHANELS", "PAGEHAND_ALLOWED_CHANNELS"),
        ("PAGEHAND_ALOWED_CHANELS", "PAGEHAND_ALLOWED_CHANNELS"),
        ("PAGEHAND_ADMNI", "PAGEHAND_ADMIN"),
        ("PAGEHAND_METRICS_TOKEN_FIEL", "PAGEHAND_METRICS_TOKEN_FILE"),
        ("JOB_API_CANCLE", "JOB_API_CANCEL"),
        ("JOB_API_KEY_2", "JOB_API_KEY"),
    ],
)
def test_a_name_within_two_letters_of_a_setting_stops_the_start(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is unknown: is {meant} meant"):
        load(COMPLETE | {name: "C0123ABCD"})
    findings = check_settings(COMPLETE | {name: "C0123ABCD"}).findings
    assert [each.check for each in findings if each.is_fault] == [f"settings.{name}"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("PAGEHAND_SOMETHING_ELSE", "There is no such setting"),
        ("JOB_API_RETRIES", "There is no such setting"),
        ("PAGEHAND_PORT", "Set PORT instead."),
    ],
)
def test_any_other_unknown_name_is_a_warning(name: str, words: str) -> None:
    environ = COMPLETE | {name: "3000"}
    load(environ)
    (warning,) = setting_names(environ).warnings(environ)
    assert warning.startswith(f"{name} has no effect.")
    assert words in warning
    assert [each.check for each in check_settings(environ).findings if each.is_fault] == [f"settings.{name}"]


@pytest.mark.parametrize("of", ["PAGEHAND", "PAGEHAND_WEB", "PAGEHAND_HEALTH", "JOB_API", "PAGEHAND_JOBSERVER"])
def test_names_that_kubernetes_injects_are_ignored(of: str) -> None:
    injected = {
        f"{of}_SERVICE_HOST": "10.0.0.11",
        f"{of}_SERVICE_PORT": "8080",
        f"{of}_SERVICE_PORT_HTTP": "8080",
        f"{of}_PORT": "tcp://10.0.0.11:8080",
        f"{of}_PORT_8080_TCP": "tcp://10.0.0.11:8080",
        f"{of}_PORT_8080_TCP_PROTO": "tcp",
        f"{of}_PORT_8080_TCP_PORT": "8080",
        f"{of}_PORT_8080_TCP_ADDR": "10.0.0.11",
    }
    assert load(COMPLETE | injected).health_port is None
    assert job_server_settings(JOB_SERVER | injected).port == 8765
    assert setting_names({}).warnings(injected) == job_server_names().warnings(injected) == []


def test_what_is_empty_or_somebodys_choice_is_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "projects.toml"
    file.write_text('[[projects]]\nname = "docs"\nproject = "docs"\nkey_variable = "JOB_API_KEY_2"\n')
    environ = COMPLETE | {"PAGEHAND_PROJECTS": str(file), "JOB_API_KEY_2": "planted-key", "PAGEHAND_ADMNI": ""}
    load(environ)
    known = environ | JOB_SERVER | {"PAGEHAND_CONFIGURATION_TOKEN": "planted", "PAGEHAND_ADMIN_FILE": "/run/admin"}
    assert setting_names(environ).warnings(known) == setting_names(environ).misspelt(known) == []


def test_the_job_server_judges_its_own_names() -> None:
    with pytest.raises(ConfigError, match="PAGEHAND_JOBSERVER_PATH is unknown: is PAGEHAND_JOBSERVER_PATHS meant"):
        job_server_settings(JOB_SERVER | {"PAGEHAND_JOBSERVER_PATH": "docs/**", "PAGEHAND_ADMNI": "U0123ABCD"})
    removed = {"PAGEHAND_JOBSERVER_LOGIN_LASTS": "7d", "PAGEHAND_JOBSERVER_TRUSTED_PROXIES": "10.0.0.1"}
    job_server_settings(JOB_SERVER | removed)
    login, proxies = job_server_names().warnings(removed | {"PAGEHAND_SOMETHING_ELSE": "1"})
    assert "LOGIN_LASTS has no effect. Reviewers no longer log in" in login
    assert "TRUSTED_PROXIES has no effect." in proxies
