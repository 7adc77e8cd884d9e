"""Settings: from the environment, its file and the projects' file, each fault with its own message."""

import logging
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from dotenv import dotenv_values
from hypothesis import given
from hypothesis import strategies as st

from bot.app.checks.settings import check_settings
from bot.app.settings.config import Config, load, setting_names
from bot.cli.jobserver import read_projects
from bot.cli.jobserver import setting_names as job_server_names
from bot.domain.projects import ChannelSettings, JobApiAbilities, PostMode, ReplyMode
from bot.errors import ConfigError
from bot.jobapi.models import Mode
from bot.jobapi.transport import job_api_proxy
from bot.queue.engine import passwords_in
from bot.runtime.env_file import add_env_file, env_line, read_env_file, write_env_file
from bot.runtime.logging import TextFormatter
from bot.slack.rendering.message_context import MessageContext
from bot.slack.sending.web_api import slack_proxy

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
        ("JOB_API_URL", "ftp://jobs.example.org"),
        ("SLACK_BOT_TOKEN", "xoxb-planted two words"),
        ("SLACK_APP_TOKEN", "xapp-1"),
        ("SLACK_SIGNING_SECRET", "planted"),
        ("SLACK_API_URL", "https://user:planted@slack.com/api"),
        ("JOB_API_URL", "https://user:planted@jobs.example.org"),
        ("JOB_API_URL", "https://jobs.example.org/?key=planted"),
        ("JOB_API_KEY", "planted two words"),
        ("JOB_API_KEY", "planté-planté"),
        ("JOB_API_GET_PATH", "/v2/job"),
        ("JOB_API_PROJECT", ".."),
        ("PAGEHAND_HOST", "planted host"),
        ("PAGEHAND_COMMAND", "/docs\tplanted"),
        ("DATABASE_URL", "planted"),
        ("DATABASE_URL", "oracle://user:planted@db/name"),
        ("DATABASE_URL", "sqlite://"),
        ("DATABASE_URL", "sqlite:////nowhere/at/all.sqlite3"),
        ("DATABASE_URL", f"sqlite:////tmp/{'planted' * 50}"),
        ("DATABASE_URL", "postgresql://user:planted@db:port/name"),
        ("DATABASE_URL", "postgresql://user:planted@one:5432,two:99999/name"),
        ("DATABASE_URL", "postgresql://user:plan@ted@db/name"),
        ("JOB_API_IDEMPOTENT", "planted"),
        ("PAGEHAND_ADMIN", "planted" * 20),
        ("PAGEHAND_MERGE_SECONDS", "-1"),
        ("PAGEHAND_ALLOWED_PEOPLE", "U1, planted"),
        ("PAGEHAND_ALLOWED_CHANNELS", "#planted"),
        ("PAGEHAND_WITHOUT", "planted"),
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


@pytest.mark.parametrize(
    ("name", "proxy_of"),
    [("HTTPS_PROXY", slack_proxy), ("HTTPS_PROXY", job_api_proxy), ("ALL_PROXY", job_api_proxy)],
)
def test_an_invalid_proxy_is_refused_but_not_quoted(
    monkeypatch: pytest.MonkeyPatch, name: str, proxy_of: Callable[[str], object]
) -> None:
    for other in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(other, raising=False)
        monkeypatch.delenv(other.upper(), raising=False)
    monkeypatch.setenv(name, "socks5://user:planted@proxy.example:1080")
    with pytest.raises(ConfigError, match="HTTPS_PROXY, ALL_PROXY") as refused:
        proxy_of("https://jobs.example.org")
    assert "planted" not in str(refused.value)
    assert proxy_of("http://127.0.0.1:1") is None


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://jobs.example.org", True),
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
    file.write_bytes(b"\xef\xbb\xbffrom-file\r\n")  # as Windows writes it
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
    """As a whole, if its characters are not encoded."""
    assert "planted-password" in passwords_in(url)
    assert "a@b/c" in load({**COMPLETE, "DATABASE_URL": "postgresql://pagehand:a@b/c@db/pagehand"}).secrets


def test_an_administrator_is_mentioned_and_a_channel_linked() -> None:
    shown = [MessageContext(admin=admin)("{ask}") for admin in ("U0123ABCD", "C0123ABCD", "the CEO")]
    assert shown == ["<@U0123ABCD>", "<#C0123ABCD>", "the CEO"]


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


JOB_SERVER = {"PAGEHAND_JOBSERVER_REPOSITORY": "/srv/docs", "PAGEHAND_JOBSERVER_API_KEY": "planted-key-of-a-server"}


@pytest.mark.promise("setting names")
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("PAGEHAND_ALLOWED_CHANELS", "PAGEHAND_ALLOWED_CHANNELS"),
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


@pytest.mark.promise("setting names")
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


@pytest.mark.promise("setting names")
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
    assert read_projects(JOB_SERVER | injected).process.port == 8765
    assert setting_names({}).warnings(injected) == job_server_names().warnings(injected) == []


@pytest.mark.promise("setting names")
def test_what_is_empty_or_somebodys_choice_is_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "projects.toml"
    file.write_text('[[projects]]\nname = "docs"\nproject = "docs"\nkey_variable = "JOB_API_KEY_2"\n')
    environ = COMPLETE | {"PAGEHAND_PROJECTS": str(file), "JOB_API_KEY_2": "planted-key", "PAGEHAND_ADMNI": ""}
    load(environ)
    known = environ | JOB_SERVER | {"PAGEHAND_CONFIGURATION_TOKEN": "planted", "PAGEHAND_ADMIN_FILE": "/run/admin"}
    assert setting_names(environ).warnings(known) == setting_names(environ).misspelt(known) == []


@pytest.mark.promise("setting names")
def test_the_job_server_judges_its_own_names() -> None:
    with pytest.raises(ConfigError, match="PAGEHAND_JOBSERVER_PATH is unknown: is PAGEHAND_JOBSERVER_PATHS meant"):
        read_projects(JOB_SERVER | {"PAGEHAND_JOBSERVER_PATH": "docs/**", "PAGEHAND_ADMNI": "U0123ABCD"})
    with pytest.raises(ConfigError, match="PAGEHAND_JOBSEVER_PORT is unknown: is PAGEHAND_JOBSERVER_PORT meant"):
        read_projects(JOB_SERVER | {"PAGEHAND_JOBSEVER_PORT": "8766", "PAGER": "less"})
    with pytest.raises(ConfigError, match="PAGHEAND_KEEP_DAYS is unknown: is PAGEHAND_KEEP_DAYS meant"):
        load(COMPLETE | {"PAGHEAND_KEEP_DAYS": "30", "PAGER": "less"})
    removed = {"PAGEHAND_JOBSERVER_LOGIN_LASTS": "7d", "PAGEHAND_JOBSERVER_TRUSTED_PROXIES": "10.0.0.1"}
    read_projects(JOB_SERVER | removed)
    login, proxies = job_server_names().warnings(removed | {"PAGEHAND_SOMETHING_ELSE": "1"})
    assert "LOGIN_LASTS has no effect. Reviewers no longer log in" in login
    assert "TRUSTED_PROXIES has no effect." in proxies
    former = ("COMMITTER", "GITHUB_API_URL", "PERMISSIONS", "SANDBOX_NETWORK")
    committer, address, permissions, network = job_server_names().warnings(
        {f"PAGEHAND_JOBSERVER_{name}": "x" for name in former}
    )
    assert "PAGEHAND_JOBSERVER_AUTHOR" in committer
    assert "address" in address
    assert "denied" in permissions
    assert "PAGEHAND_JOBSERVER_EGRESS=open" in network


SLACK = {"SLACK_BOT_TOKEN": "xoxb-planted-bot", "SLACK_APP_TOKEN": "xapp-planted-app"}
JOB_API = {"JOB_API_URL": "https://jobs.example.org", "JOB_API_KEY": "planted-key"}
CHANNEL_ID = "must be a channel id, like C0123ABCD (Slack shows it at the end of the channel's details)"
TWO = """
[[projects]]
name = "guides"
project = "prj_guides"
words = ["install guide", "tutorial"]

[[projects]]
name = "api"
project = "prj_api"
url = "https://api.example.org/"
key_file = "api.key"
get_path = "/jobs/{id}"
timeout = 7
idempotent = true
requester = true
cancel = true
files = true
instruction = true
modes = true
mode = "plan"
channels = ["C1"]

[[channels]]
id = "C2"
project = "API"
replies = "mentions"
broadcast = true
mention = false
posts = "ends"
mode = "edit"
"""


def loaded(directory: Path, text: str, **environ: str) -> Config:
    file = directory / "projects.toml"
    file.write_text(text, encoding="utf-8")
    return load({**SLACK, "PAGEHAND_PROJECTS": str(file), **environ})


def file_faults(directory: Path, text: str, **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loaded(directory, text, **environ)
    listed = caught.value.faults
    assert all(fault.startswith("PAGEHAND_PROJECTS") for fault in listed), listed
    assert "planted" not in "".join(listed)
    return [fault.removeprefix("PAGEHAND_PROJECTS: ") for fault in listed]


def test_a_project_inherits_missing_values_from_the_settings(tmp_path: Path) -> None:
    (tmp_path / "api.key").write_text("planted-api-key\n")
    config = loaded(tmp_path, TWO, **JOB_API, PAGEHAND_REPLIES="participants", JOB_API_TIMEOUT="9", PAGEHAND_MODE="ask")
    guides, api = config.projects
    assert (guides.id, guides.job_api.base_url, guides.job_api.timeout) == ("prj_guides", JOB_API["JOB_API_URL"], 9)
    assert guides.job_api.api_key.newest == "planted-key"
    assert guides.project.abilities == JobApiAbilities()
    assert (api.id, api.job_api.base_url, api.job_api.timeout) == ("prj_api", "https://api.example.org", 7)
    assert api.job_api.api_key.newest == "planted-api-key"
    assert api.job_api.get_path == "/jobs/{id}"
    assert api.project.abilities == JobApiAbilities(
        idempotent=True, requester=True, cancel=True, files=True, instruction=True, modes=True
    )
    known = config.known_projects
    assert known.names == ("guides", "api")
    assert known.all[1].channels == {"C1", "C2"}
    assert known.channel("C2") == ChannelSettings(
        ReplyMode.MENTIONS, broadcast=True, mention=False, posts=PostMode.ENDS, mode=Mode.EDIT
    )
    asked = [known.mode(*where) for where in (("C1", "api"), ("C2", "api"), ("C1", "guides"), ("C1", "gone"))]
    assert asked == [Mode.PLAN, Mode.EDIT, Mode.ASK, Mode.EDIT]
    assert (known.posts("C2"), known.posts("C9")) == (PostMode.ENDS, PostMode.ALL)
    assert known.channel("C9") == ChannelSettings(ReplyMode.PARTICIPANTS)


def test_without_a_file_the_settings_form_one_project() -> None:
    config = load({**SLACK, **JOB_API, "JOB_API_PROJECT": "prj", "JOB_API_CANCEL": "true"})
    (only,) = config.projects
    assert (only.project.name, only.id) == ("prj", "prj")
    assert only.project.abilities == JobApiAbilities(cancel=True)


def test_with_a_file_the_job_api_settings_are_optional(tmp_path: Path) -> None:
    text = '[[projects]]\nname = "a"\nproject = "p"\nurl = "https://a.example"\nkey_variable = "A_KEY"'
    config = loaded(tmp_path, text, A_KEY="planted-a-key")
    assert config.projects[0].job_api.api_key.newest == "planted-a-key"
    assert "planted-a-key" in config.secrets
    assert "planted" not in repr(config)


def test_a_plain_http_address_is_warned_about_for_each_project(tmp_path: Path) -> None:
    text = '[[projects]]\nname = "a"\nproject = "p"\nurl = "http://a.example"\nkey_variable = "A_KEY"'
    (warning,) = loaded(tmp_path, text, A_KEY="planted-a-key").warnings
    assert warning.startswith("the url of a begins with http://")


def test_all_malformed_values_are_reported_at_once_with_their_place(tmp_path: Path) -> None:
    """Nothing in the file is quoted."""
    text = """
    [[projects]]
    name = "two words planted"
    url = "planted"
    key_file = "planted-none"
    key_variable = "not a name, but planted"
    timeout = "20"
    cancel = "yes"
    words = ["ok", "?!"]
    channels = "C1"
    urll = 1

    [[projects]]
    name = "b"
    project = "p"
    channels = ["#planted", "C7"]

    [[channels]]
    id = "C7"
    replies = "planted"
    """
    names = "name, project, url, key_file, key_variable, get_path, timeout"
    more = "idempotent, requester, cancel, files, instruction, pull_request, pictures, modes, mode, channels, words"
    assert sorted(file_faults(tmp_path, text, **JOB_API)) == sorted(
        [
            "project 1, name: must be one word of at most 60 letters, digits, dots and hyphens, because people type it",
            "project 1, project: is missing",
            "project 1, url: must begin with http:// or https:// and name a host",
            "project 1, key_file: names a file that cannot be read: No such file or directory",
            "project 1, key_variable: must be the name of an environment variable (not the key itself)",
            "project 1, timeout: must be a valid number",
            "project 1, cancel: must be a valid boolean",
            "project 1, words, entry 2: must contain a letter or a digit",
            "project 1, channels: must be a list, in [ ]",
            f"project 1: it has an entry urll that is unknown; the known ones are {names}, {more}",
            f"project 2, channels, entry 1: {CHANNEL_ID}",
            "channel 1, replies: must be 'everyone', 'participants' or 'mentions'",
        ]
    )


def test_all_contradictions_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("planted-key")
    text = """
    [[projects]]
    name = "one"
    project = "o"
    key_file = "key"
    key_variable = "ONE_KEY"
    words = ["ok"]

    [[projects]]
    name = "twice"
    project = "p"
    words = ["OK!"]

    [[projects]]
    name = "TWICE"
    project = "p"

    [[channels]]
    id = "C7"
    project = "third"

    [[channels]]
    id = "C7"
    project = "planted"
    """
    assert sorted(file_faults(tmp_path, text, **JOB_API, ONE_KEY="planted-other-key")) == [
        "channel 1, project: no project has this name",
        "channel 2, project: no project has this name",
        "channels 1 and 2 have the same id",
        "project 1: it has both key_file and key_variable: remove one of them",
        "projects 1 and 2 have the same word",
        "projects 2 and 3 have the same name",
        "projects 2 and 3 have the same project (at the same url)",
    ]


def test_code_hosts_have_a_token_each(tmp_path: Path) -> None:
    (tmp_path / "api.key").write_text("planted-api-key")
    (tmp_path / "token").write_text("planted-token")
    hosts = """
    [[code_hosts]]
    url = "https://git.example"
    token_file = "token"
    previews = ["Deploy Preview*", "netlify/*"]

    [[code_hosts]]
    token_variable = "GIT_TOKEN"
    webhook_secret_variable = "GIT_WEBHOOKS"
    """
    given = {**JOB_API, "GIT_TOKEN": "planted-other-token", "GIT_WEBHOOKS": "planted-webhook-secret"}
    given |= {"CODE_HOST_TOKEN": "planted-third", "CODE_HOST_WEBHOOK_SECRET": "planted-third-secret"}
    given |= {"CODE_HOST_URL": "https://x.example", "CODE_HOST_PREVIEWS": "a b*, c,"}
    config = loaded(tmp_path, TWO + hosts, **given)
    found = [(each.url, each.token.newest, each.previews) for each in config.code_hosts]
    assert found == [
        ("https://git.example", "planted-token", ("Deploy Preview*", "netlify/*")),
        ("https://github.com", "planted-other-token", ()),
        ("https://x.example", "planted-third", ("a b*", "c")),
    ]
    assert [(url, secret.newest) for url, secret in config.webhook_senders] == [
        ("https://github.com", "planted-webhook-secret"),
        ("https://x.example", "planted-third-secret"),
    ]
    secrets = {each.token for each in config.code_hosts} | {secret for _, secret in config.webhook_senders}
    assert secrets <= set(config.rotating_secrets)
    assert "planted" not in repr(config)


def test_code_hosts_without_a_token_or_with_one_address_are_refused(tmp_path: Path) -> None:
    text = """
    [[code_hosts]]
    [[code_hosts]]
    webhook_secret_file = "api.key"
    webhook_secret_variable = "JOB_API_KEY"
    """
    (tmp_path / "api.key").write_text("planted-api-key")
    fault = "it needs either token_file or token_variable"
    both = "it has both webhook_secret_file and webhook_secret_variable: remove one of them"
    assert sorted(file_faults(tmp_path, TWO + text, **JOB_API)) == [
        f"code_host 1: {fault}",
        f"code_host 2: {both}",
        f"code_host 2: {fault}",
        "code_hosts 1 and 2 have the same url",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "[[projects]]: is missing"),
        ("projects = []", "[[projects]]: must occur at least once, and at most 100 times"),
        ("projects = 1", "[[projects]]: must be a list, in [ ]"),
        ("projects = [1]", "project 1: must be a table"),
        (
            'more = 1\n[[projects]]\nname = "a"\nproject = "p"',
            "it has an entry more that is unknown; the known ones are [[projects]], [[channels]], [[code_hosts]]",
        ),
    ],
)
def test_a_file_of_the_wrong_shape_is_explained(tmp_path: Path, text: str, fault: str) -> None:
    assert file_faults(tmp_path, text, **JOB_API) == [fault]


def test_an_unreadable_file_is_reported_with_the_rest(tmp_path: Path) -> None:
    """Nothing is reported as missing that the file may contain."""
    file = tmp_path / "projects.toml"
    environ = {**SLACK, "PAGEHAND_PROJECTS": str(file), "PORT": "planted"}

    def listed() -> list[str]:
        with pytest.raises(ConfigError) as caught:
            load(environ)
        return [fault for fault in caught.value.faults if not fault.startswith("PORT ")]

    assert listed() == ["PAGEHAND_PROJECTS names a file that cannot be read: No such file or directory"]
    file.write_bytes(b"\xff\xfeplanted")
    assert listed() == ["PAGEHAND_PROJECTS names a file that cannot be read: it is not text"]
    file.write_text("[[projects]]\nname = planted")
    assert listed() == ["PAGEHAND_PROJECTS names a file that is not TOML (at line 2, column 8)"]


def test_a_key_is_used_only_by_its_project(tmp_path: Path) -> None:
    """The key in the settings belongs to the address in the settings."""
    text = '[[projects]]\nname = "a"\nproject = "p"\nurl = "https://other.example"'
    assert file_faults(tmp_path, text, **JOB_API) == [
        "project 1: it has a url of its own, so it needs key_file or key_variable: JOB_API_KEY is not sent elsewhere"
    ]
    same = text.replace("https://other.example", f"{JOB_API['JOB_API_URL']}/")
    assert loaded(tmp_path, same, **JOB_API).projects[0].job_api.base_url == JOB_API["JOB_API_URL"]


def test_a_value_missing_from_file_and_settings_is_reported(tmp_path: Path) -> None:
    """Both the address and the key are required."""
    assert file_faults(tmp_path, '[[projects]]\nname = "a"\nproject = "p"') == [
        "project 1: it has no url, and JOB_API_URL is not set",
        "project 1: it has neither key_file nor key_variable, and JOB_API_KEY is not set",
    ]


def test_a_channel_belongs_to_one_project(tmp_path: Path) -> None:
    """Wherever that is configured."""
    text = """
    projects = [{ name = "a", project = "p", channels = ["C1"] }, { name = "b", project = "q" }]
    channels = [{ id = "C1", project = "b" }]
    """
    assert file_faults(tmp_path, text, **JOB_API) == ["projects 1 and 2 have the same channel"]
    assert loaded(tmp_path, text.replace('project = "b"', 'project = "A"'), **JOB_API).known_projects.all[0].channels


@pytest.mark.parametrize("key", ["planted_a1b2c3d4", "PLANTED7EXAMPLE7KEY"])
def test_a_key_in_place_of_a_variable_name_is_not_printed(tmp_path: Path, key: str) -> None:
    """Many keys look like names."""
    text = f'[[projects]]\nname = "a"\nproject = "p"\nkey_variable = "{key}"'
    (fault,) = file_faults(tmp_path, text, **JOB_API)
    assert "key_variable: names a variable that is not set" in fault
    assert key not in fault


@pytest.mark.parametrize(("mode", "warned"), [(0o600, 0), (0o640, 0), (0o644, 1)])
def test_a_world_readable_key_file_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, warned: int
) -> None:
    (tmp_path / "key").write_text("planted-key")
    (tmp_path / "key").chmod(mode)
    loaded(tmp_path, '[[projects]]\nname = "a"\nproject = "p"\nurl = "https://a.example"\nkey_file = "key"', **JOB_API)
    assert len(caplog.records) == warned
    assert all("everybody on this machine may read" in each.getMessage() for each in caplog.records)
    assert "planted-key" not in caplog.text


def test_nobody_is_told_to_close_a_folder_that_is_named_as_a_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It may be /tmp."""
    tmp_path.chmod(0o755)
    (fault,) = faults({**COMPLETE, "JOB_API_KEY": "", "JOB_API_KEY_FILE": str(tmp_path)})
    assert (fault, caplog.text) == ("JOB_API_KEY_FILE names a file that cannot be read: Is a directory", "")


def test_a_webhook_secret_without_http_does_nothing() -> None:
    secret = {"CODE_HOST_WEBHOOK_SECRET": "planted-webhook-secret"}
    (words,) = load({**COMPLETE, **secret}).without_effect
    assert "CODE_HOST_WEBHOOK_SECRET has no effect with SLACK_APP_TOKEN" in words
    over_http = {"SLACK_APP_TOKEN": "", "SLACK_SIGNING_SECRET": "planted-signing-secret"}
    assert load({**COMPLETE, **secret, **over_http}).without_effect == []
    assert load(COMPLETE).without_effect == []
    found = {each.check: each for each in check_settings({**COMPLETE, **secret}).findings}
    assert found["settings.CODE_HOST_WEBHOOK_SECRET"].found == words
