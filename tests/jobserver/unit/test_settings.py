"""Settings of the job server, what may be an address or a branch, and who may merge and close."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from bot.errors import ConfigError
from bot.jobserver.sandbox.choice import forget_secrets
from bot.jobserver.settings import PREFIX, JobServerSettings, is_branch_name, repository_protocol
from bot.jobserver.settings.projects import Projects
from bot.runtime.rotating_secrets import SecretFile

KEY = "planted-key-of-sixteen"


def made(**environ: str) -> JobServerSettings:
    given = {"REPOSITORY": "/srv/docs.git", "API_KEY": KEY} | environ
    return JobServerSettings.from_environment({PREFIX + name: value for name, value in given.items()})


def faults(**environ: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        made(**environ)
    assert KEY not in str(caught.value)
    return caught.value.faults


def test_only_a_repository_and_a_key_are_required() -> None:
    settings = made()
    assert (settings.host, settings.editor, settings.shown_model) == ("127.0.0.1", "builtin", "builtin")
    assert KEY not in repr(settings)
    assert KEY not in str(settings.model_dump())


def test_settings_created_directly_ignore_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}PORT", "1")
    assert JobServerSettings(repository="/srv/docs.git", api_key=SecretStr(KEY)).port == 8765


def test_every_setting_is_described() -> None:
    assert [name for name, field in JobServerSettings.model_fields.items() if not field.description] == []


def test_all_errors_are_listed_at_once() -> None:
    listed = faults(REPOSITORY="", API_KEY="", EDITOR="command", PORT="x", AUTHOR="nobody", TIME_LIMIT="10m")
    assert [fault.removeprefix(PREFIX).partition(": ")[0] for fault in listed] == [
        "API_KEY is missing",
        "AUTHOR must look like Name <address@example.com>",
        "COMMAND is missing",
        "PORT must be a valid integer",
        "REPOSITORY is missing",
        "TIME_LIMIT must be in seconds, or like PT30M or P7D",
    ]


def test_the_key_can_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    assert made(API_KEY="", API_KEY_FILE=str(tmp_path / "key")).api_key.newest == KEY


@pytest.mark.parametrize(
    "text", ['["agent", "--say", "{prompt_file}"]', "agent --say '{prompt_file}'", 'agent --say "{prompt_file}"']
)
def test_the_command_is_split_once(text: str) -> None:
    settings = made(
        EDITOR="command", COMMAND=text, TIME_LIMIT="90", ARCHIVE_AFTER="P7D", PASS_ENVIRONMENT="A_KEY, B_KEY"
    )
    assert settings.command == ("agent", "--say", "{prompt_file}")
    assert settings.shown_model == "agent"
    assert (settings.time_limit, settings.archive_after) == (timedelta(seconds=90), timedelta(days=7))
    assert settings.pass_environment == ("A_KEY", "B_KEY")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_KEY", "short"),
        ("API_KEY", ""),
        ("API_KEY", f"{KEY}\nshort"),
        ("API_KEY", f"{KEY}\n{KEY}-2\n{KEY}-3"),
        ("EDITOR", "command"),
        ("EDITOR", "agent"),
        ("EDITOR", "vi"),
        ("AGENT", "'x"),
        ("AGENT_HOME", "/nothing/here"),
        ("COMMAND", "[1"),
        ("COMMAND", "[1]"),
        ("COMMAND", "'x"),
        ("PUBLIC_URL", "docs.example"),
        ("PUBLIC_URL", "javascript:x"),
        ("PUBLIC_URL", "https://docs.example/jobs"),
        ("REPOSITORY", "ext::sh -c x"),
        ("REPOSITORY", "-u"),
        ("REPOSITORY", ""),
        ("REPOSITORY", "ftp://x/y"),
        ("REPOSITORY", "https://me:secret@x/y"),
        ("BASE_BRANCH", "--x"),
        ("BASE_BRANCH", "a..b"),
        ("AUTHOR", "nobody"),
        ("AUTHOR", "a <b@c>\nx"),
        ("TIME_LIMIT", "0"),
        ("TIME_LIMIT", "x"),
        ("PORT", "x"),
        ("API_KEY_FILE", "/nothing/here"),
    ],
)
def test_an_invalid_value_is_named_without_quoting_it(name: str, value: str) -> None:
    (fault,) = faults(**{name: value} | ({"API_KEY": ""} if name == "API_KEY_FILE" else {}))
    assert fault.startswith(PREFIX + ("COMMAND" if (name, value) == ("EDITOR", "command") else name))
    assert "secret" not in fault
    words = fault.removeprefix(PREFIX).partition(": ")[0]
    assert not re.search("input|string|pattern", words, re.IGNORECASE), "these are words for programmers"


@pytest.mark.parametrize(
    ("repository", "protocol"),
    [
        ("/srv/x.git", "file"),
        ("x", "file"),
        ("./a:b", "file"),
        ("file:///x", "file"),
        ("git@host:a/b.git", "ssh"),
        ("host:a", "ssh"),
        ("ssh://h/x", "ssh"),
        ("https://h/x", "https"),
        ("http://h/x", "http"),
        ("HTTPS://h/x", "https"),
    ],
)
def test_an_address_allows_one_protocol(repository: str, protocol: str) -> None:
    assert repository_protocol(repository) == protocol


@given(st.text())
def test_no_address_allows_a_git_helper(text: str) -> None:
    try:
        assert repository_protocol(text) in {"file", "http", "https", "ssh"}
    except ValueError:
        return
    assert not text.startswith(("-", "ext::"))


@pytest.mark.parametrize(
    "name",
    [
        "",
        "-x",
        "a b",
        "a..b",
        "a~1",
        "a^",
        "a:b",
        "a?",
        "*",
        "a[",
        "a\\b",
        "@",
        "a@{1}",
        "x.lock",
        "x/",
        "/x",
        ".x",
        "a/.b",
        "a//b",
        "x.",
        "a\nb",
        "a\0",
        "main\n",
    ],
)
def test_valid_branch_names_are_accepted_and_no_others(name: str) -> None:
    assert not is_branch_name(name)
    assert all(map(is_branch_name, ("main", "release/1.x", "pagehand/0a", "ünïcode", "a-b_c")))


ADA, BEN = "planted-key-of-ada", "planted-key-of-ben"


def test_reviewers_are_read_from_a_file_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "reviewers").write_text(f"Ada  Lovelace: {ADA}\n\n Ben:{BEN}\n")
    settings = made(REVIEWERS_FILE=str(tmp_path / "reviewers"))
    found = [(one.name, one.key.get_secret_value()) for one in settings.reviewers.current]
    assert found == [("Ada Lovelace", ADA), ("Ben", BEN)]
    assert ADA not in repr(settings)
    assert ADA not in repr(settings.reviewers.current)
    assert made(REVIEWERS=f"Ada:{ADA}, Ben:{BEN}").reviewers.current[1].name == "Ben"
    assert made().reviewers.current == ()


def test_an_empty_reviewers_file_lists_nobody_until_it_has_a_line(tmp_path: Path) -> None:
    file = tmp_path / "reviewers"
    file.touch()
    settings = made(REVIEWERS_FILE=str(file))
    assert settings.reviewers.current == ()
    assert settings.reviewers.file == SecretFile(file, f"{PREFIX}REVIEWERS_FILE"), "it is read again"
    with pytest.raises(ConfigError, match="API_KEY is missing"):
        JobServerSettings.from_environment({f"{PREFIX}REPOSITORY": "/srv/docs.git", f"{PREFIX}API_KEY_FILE": str(file)})


@pytest.mark.parametrize(
    ("reviewers", "fault"),
    [
        (ADA, "each with a name"),
        (f": {ADA}", "each with a name"),
        (f"Ada: Lovelace: {ADA}", "without a colon"),
        ("Ada: short", "at least 22 characters"),
        ("Ada: planted key with spaces", "at least 22 characters"),
        (f"Ada: {ADA}\nAda: {BEN}\nAda: {BEN}-new", "two keys while one is replaced"),
        (f"Ada: {ADA}\nAda: {ADA}", "of their own"),
        (f"Ada: {ADA}\nBen: {ADA}", "of their own"),
    ],
)
def test_an_invalid_reviewer_is_refused_without_quoting_the_key(reviewers: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault) as caught:
        made(REVIEWERS=reviewers)
    assert ADA not in str(caught.value)


def test_private_pages_need_a_reader() -> None:
    with pytest.raises(ConfigError, match="PRIVATE_PAGES needs PAGEHAND_JOBSERVER_REVIEWERS"):
        made(PRIVATE_PAGES="true")
    assert made(PRIVATE_PAGES="true", REVIEWERS=f"Ada:{ADA}").private_pages


@pytest.mark.parametrize(
    ("environ", "private"),
    [
        ({}, False),
        ({"AGENT": "claude"}, True),
        ({"EDITOR": "command", "COMMAND": "fix"}, True),
        ({"CHECKS": "make test"}, True),
        ({"AGENT": "claude", "PULL_REQUESTS": "local"}, True),
    ],
)
def test_with_programs_drafts_are_for_reviewers(environ: dict[str, str], *, private: bool) -> None:
    assert made(**environ).private_pages is private


def test_drafts_are_public_only_if_no_program_can_reach_them() -> None:
    its_pages = {"PUBLIC_URL": "https://Jobs.example", "EGRESS": "private:jobs.example:443"}
    for open_way in ({"SANDBOX": "none"}, {"EGRESS": "open"}, its_pages, its_pages | {"EGRESS": "jobs.example:443"}):
        with pytest.raises(ConfigError, match="PRIVATE_PAGES must not be false"):
            made(PRIVATE_PAGES="false", AGENT="claude", **open_way)
    assert made(PRIVATE_PAGES="false", SANDBOX="none").private_pages is False
    assert made(PRIVATE_PAGES="false", AGENT="claude").private_pages is False
    neighbour = its_pages | {"EGRESS": "jobs.example:8443, other.example:443"}
    assert made(PRIVATE_PAGES="false", AGENT="claude", **neighbour).private_pages is False


@pytest.mark.parametrize(("key", "may"), [("k" * 22, True), ("k" * 21, False)])
def test_a_short_key_of_1_0_0_loses_merging_and_the_warning_says_how_to_replace_it(key: str, *, may: bool) -> None:
    settings = made(REVIEWERS=f"Ada: {key}\nBen: {BEN}-long-enough")
    assert [one.may_decide for one in settings.reviewers.current] == [may, True]
    words = "too short: Ada. Give each a new one of at least 22 characters (openssl rand -hex 24)"
    assert (words in settings.warning_about_reviewers) is not may


@pytest.mark.parametrize("url", ["mysql://ada:planted@localhost/jobs", "sqlite:///jobs.sqlite3"])
def test_a_database_is_postgresql(url: str) -> None:
    (fault,) = faults(DATABASE_URL=url)
    assert fault.startswith(f"{PREFIX}DATABASE_URL must begin with postgresql://: ")


def test_the_log_masks_the_password_of_the_database() -> None:
    secrets = Projects.one(made(DATABASE_URL="postgresql://ada:planted%2Fpassword@localhost/jobs")).secrets
    assert {"planted/password", "planted%2Fpassword", KEY} <= set(secrets)


def test_keys_are_removed_from_the_environment() -> None:
    kept = {f"{PREFIX}PORT": "1", "PATH": "/bin"}
    secret = {f"{PREFIX}REVIEWERS": f"Ada:{ADA}", f"{PREFIX}REVIEWERS_FILE": "x", f"{PREFIX}API_KEY": KEY}
    environ = kept | secret
    forget_secrets(environ)
    assert environ == kept
