"""Settings of the job server, what may be an address or a branch, and what a child gets to see."""

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bot.jobserver import JobServerSettings
from bot.jobserver.editors.command import arguments_for, child_environment
from bot.jobserver.guards import allowed_hosts, host_name, is_own_origin
from bot.jobserver.jobs import Instruction
from bot.jobserver.settings import PREFIX, is_branch_name, repository_protocol
from bot.jobserver.work import commit_message, describe, subject

KEY = "planted-key-of-sixteen"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{PREFIX}REPOSITORY", "/srv/docs.git")
    monkeypatch.setenv(f"{PREFIX}API_KEY", KEY)


def made() -> JobServerSettings:
    return JobServerSettings()


def test_defaults_need_only_a_repository_and_a_key() -> None:
    settings = made()
    assert (settings.host, settings.editor, settings.shown_model) == ("127.0.0.1", "builtin", "builtin")
    assert KEY not in repr(settings)
    assert KEY not in str(settings.model_dump())


def test_every_setting_is_described() -> None:
    assert [name for name, field in JobServerSettings.model_fields.items() if not field.description] == []


def test_the_key_comes_from_a_file_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(f"{PREFIX}API_KEY")
    (tmp_path / "key").write_text(f"{KEY}\n")
    monkeypatch.setenv(f"{PREFIX}API_KEY_FILE", str(tmp_path / "key"))
    assert made().api_key.get_secret_value() == KEY


@pytest.mark.parametrize("text", ['["agent", "--say", "{prompt}"]', "agent --say '{prompt}'", 'agent --say "{prompt}"'])
def test_the_command_is_split_once(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(f"{PREFIX}EDITOR", "command")
    monkeypatch.setenv(f"{PREFIX}COMMAND", text)
    monkeypatch.setenv(f"{PREFIX}TIME_LIMIT", "90")
    monkeypatch.setenv(f"{PREFIX}ARCHIVE_AFTER", "P7D")
    monkeypatch.setenv(f"{PREFIX}PASS_ENVIRONMENT", "A_KEY, B_KEY")
    settings = made()
    assert settings.command == ("agent", "--say", "{prompt}")
    assert settings.shown_model == "agent"
    assert (settings.time_limit, settings.archive_after) == (timedelta(seconds=90), timedelta(days=7))
    assert settings.pass_environment == ("A_KEY", "B_KEY")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_KEY", "short"),
        ("API_KEY", ""),
        ("EDITOR", "command"),
        ("EDITOR", "vi"),
        ("COMMAND", "[1"),
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
        ("PORT", "x"),
        ("API_KEY_FILE", "/nothing/here"),
    ],
)
def test_what_cannot_work_is_refused_without_the_key(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    if name == "API_KEY_FILE":
        monkeypatch.delenv(f"{PREFIX}API_KEY")
    monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(ValidationError) as error:
        made()
    assert KEY not in str(error.value)
    assert "secret" not in str(error.value)


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
def test_no_address_allows_a_helper(text: str) -> None:
    try:
        assert repository_protocol(text) in {"file", "http", "https", "ssh"}
    except ValueError:
        return
    assert not text.startswith(("-", "ext::"))


@pytest.mark.parametrize("name", ["main", "release/1.x", "pagehand/0a", "ünïcode", "a-b_c"])
def test_branches(name: str) -> None:
    assert is_branch_name(name)


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
def test_not_branches(name: str) -> None:
    assert not is_branch_name(name)


@given(prompt=st.text())
def test_a_prompt_is_never_an_option(prompt: str) -> None:
    program, bare, flag = arguments_for(("agent", "{prompt}", "--say={prompt}"), prompt)
    assert program == "agent"
    assert not bare.startswith("-")
    assert bare.lstrip(" ") == prompt.lstrip(" ")
    assert flag == f"--say={prompt}"


def test_a_childs_environment_is_an_allow_list() -> None:
    seen = {"PATH": "/bin", "A_KEY": "a", "OTHER": "o", "HOME": f"/x/{KEY}", f"{PREFIX}API_KEY": KEY}
    kept = child_environment(seen, ["A_KEY", f"{PREFIX}API_KEY"], secret=KEY)
    assert kept == {"PATH": "/bin", "A_KEY": "a", "GIT_TERMINAL_PROMPT": "0"}


@given(st.text())
def test_any_host_header_is_a_name_or_nothing(header: str) -> None:
    assert isinstance(host_name(header), str)


def test_own_names_and_origins() -> None:
    hosts = allowed_hosts("192.0.2.1", "https://Jobs.example:8443/x")
    assert hosts == {"127.0.0.1", "localhost", "::1", "192.0.2.1", "jobs.example"}
    public = "https://jobs.example:8443"
    assert is_own_origin("https://jobs.example:8443", "127.0.0.1:1", public)
    assert is_own_origin("http://127.0.0.1:1", "127.0.0.1:1", public)
    for origin in (None, "", "null", "https://jobs.example", "http://127.0.0.1", "https://127.0.0.1:1"):
        assert not is_own_origin(origin, "127.0.0.1:1", public)


@given(st.text())
def test_a_commit_message_ends_with_our_trailer_whatever_the_prompt(prompt: str) -> None:
    message = commit_message(Instruction(7, "abc", "pagehand/abc", prompt))
    first, rest = message.split("\n", 1)
    assert 0 < len(first) <= 72
    assert first.isprintable()
    assert rest.startswith("\n")
    assert message.endswith("\n\nPagehand-Instruction: abc/7\n")
    assert "\0" not in message


def test_titles_and_descriptions() -> None:
    assert subject("  a\n b\t") == "a b"
    assert subject("\u200b\n") == "Change the documentation"
    assert describe("a\nb", "Done.") == "> a\n> b\n\nDone."
    assert describe("a", "") == "> a"
