"""What a file of projects says, and what is said about one that is not valid: never a value."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import ConfigError
from bot.jobserver.metrics import RunCounts
from bot.jobserver.project import not_offered
from bot.jobserver.sandbox.choice import forget_secrets
from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.jobserver.settings.process import ProcessSettings
from bot.jobserver.settings.projects import Projects
from bot.jobserver.store.records import InstructionBacklog
from bot.runtime import rotating_secrets

KEY, OTHER_KEY = "planted-key-of-sixteen", "planted-key-of-another"
DOCS = f'[projects.docs]\nrepository = "/srv/docs.git"\napi_key = "{KEY}"\n'
SITE = f'[projects.site]\nrepository = "/srv/site.git"\napi_key = "{OTHER_KEY}"\n'


def read(folder: Path, content: str | bytes, **environ: str) -> Projects:
    file = folder / "projects.toml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Projects.read({f"{PREFIX}{name}": value for name, value in ({"CONFIG": str(file)} | environ).items()}, [])


def test_a_project_has_its_own_settings_and_those_of_the_environment_by_default(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    (tmp_path / "token").write_text("planted-token-of-all")
    docs = '[projects.docs]\nrepository = "/srv/docs.git"\napi_key_file = "key"\nrate_limit = 7\ntime_limit = 90\n'
    docs += 'draft = true\npaths = "docs/** README.md"\ngithub_token = ""\nmodel_key_file = ""\n'
    environ = {"RATE_LIMIT": "3", "LABELS": "a,b", "GITHUB_TOKEN_FILE": str(tmp_path / "token"), "PORT": "1"}
    environ |= {"MODEL_KEY": "planted-key-of-all"}
    site_table = SITE.replace("/srv/site.git", "https://github.com/acme/site")
    projects = read(tmp_path, f"\ufeff{docs}{site_table}", **environ)  # as Windows begins it
    docs_settings, site = projects.current["docs"], projects.current["site"]
    assert (docs_settings.project_id, docs_settings.rate_limit, docs_settings.labels) == ("docs", 7, ("a", "b"))
    assert (docs_settings.draft, docs_settings.paths) == (True, ("docs/**", "README.md"))
    assert (docs_settings.time_limit.total_seconds(), docs_settings.api_key.newest) == (90, KEY)
    assert (docs_settings.pull_requests, site.pull_requests) == ("local", "github"), "empty text takes a default away"
    assert (docs_settings.model_key is None, site.model_key is None) == (True, False)
    assert (site.rate_limit, projects.process.port, site.port) == (3, 1, 1)
    assert {KEY, OTHER_KEY, "planted-token-of-all"} <= set(projects.secrets)


def test_without_a_file_there_is_one_project() -> None:
    given = {"REPOSITORY": "/srv/docs.git", "API_KEY": KEY, "PROJECT_ID": "handbook"}
    projects = Projects.read({f"{PREFIX}{name}": value for name, value in given.items()}, [])
    assert (list(projects.current), projects.has_file, projects.look()) == (["handbook"], False, False)


NO_TABLES = "it must have 1 to 100 tables such as [projects.docs], and nothing else"
NOT_A_NAME = "a project's name must be one word of at most 60 letters, digits, dots, hyphens and underscores"


@pytest.mark.parametrize(
    ("content", "faults"),
    [
        ("", [NO_TABLES]),
        ("[projects]", [NO_TABLES]),
        ("projects = 1", [NO_TABLES]),
        ("[[projects]]\nname = 'docs'", [NO_TABLES]),
        (DOCS + "[channels]", [NO_TABLES]),
        ("[projects]\ndocs = 'planted-value'", ["project docs: it must be a table, [projects.docs]"]),
        (DOCS.replace(".docs", '."../x"'), [NOT_A_NAME]),
        (DOCS.replace(".docs", '.""'), [NOT_A_NAME]),
        (DOCS.replace(".docs", f".{'a' * 61}"), [NOT_A_NAME]),
        (DOCS.replace(".docs", '."a\\nb"'), [NOT_A_NAME]),
        (DOCS + SITE.replace(".site", ".Docs"), ["two projects differ only in upper and lower case"]),
        (DOCS + '"planted-value" = 1', ["project docs: it has an entry whose name is no setting's"]),
        (DOCS + "rate_limits = 1", [
            "project docs: rate_limits is unknown: is rate_limit meant? Correct its name, or remove it"
        ]),
        (DOCS + "PATHS = '**'", ["project docs: PATHS is unknown: is paths meant? Correct its name, or remove it"]),
        (DOCS + f"{PREFIX}PATHS = '**'", [f"project docs: {PREFIX}PATHS has no effect. Its name is paths here."]),
        (DOCS + "colour = 1", ["project docs: colour has no effect. There is no such setting: remove it."]),
        (DOCS + "port = 1", [
            f"project docs: port has no effect. It is the whole server's: set {PREFIX}PORT."
        ]),
        (DOCS + "project_id = 'x'", ["project docs: project_id has no effect. It is the name of the table."]),
        (DOCS + "labels = ['planted-value']", [
            "project docs: labels must be text, a number, true or false, written as in a variable"
        ]),
        (DOCS + "checks = 2026-01-01", [
            "project docs: checks must be text, a number, true or false, written as in a variable"
        ]),
        (DOCS + SITE.replace(OTHER_KEY, KEY), ["projects docs and site have the same api_key"]),
    ],
)  # fmt: skip
def test_a_file_that_is_not_valid_is_described_without_a_value(tmp_path: Path, content: str, faults: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, content)
    assert caught.value.faults == [f"{PREFIX}CONFIG: {fault}" for fault in faults]


@pytest.mark.parametrize(
    ("content", "environ", "begins"),
    [
        (DOCS.replace("repository", "model"), {"REPOSITORY": "/srv"}, "project docs: repository is missing"),
        (DOCS.replace("api_key", "api_key_file"), {}, "project docs: api_key_file names a file that cannot be read"),
        (SITE.replace(OTHER_KEY, "short"), {"API_KEY": KEY}, "project site: api_key must be one line"),
        (DOCS + "rate_limit = 0.5", {}, "project docs: rate_limit must be a valid integer"),
        (DOCS + "memory_limit = '4 planted-value'", {}, "project docs: memory_limit"),
        (DOCS + "reviewers = 'planted-value'", {}, "project docs: reviewers must be lines"),
        (DOCS, {"EGRESS": "1.2.3.4:443"}, f"project docs: {PREFIX}EGRESS must be a name"),
        (DOCS + "editor = 'command'", {}, f"project docs: {PREFIX}COMMAND is missing"),
    ],
)  # fmt: skip
def test_a_setting_that_is_not_valid_is_named_with_its_project(
    tmp_path: Path, content: str, environ: dict[str, str], begins: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, content, **environ)
    [fault] = caught.value.faults
    assert fault.startswith(f"{PREFIX}CONFIG: {begins}")
    assert "planted" not in fault


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"\xff\xfe", "names a file that cannot be read: it is not text"),
        (b"[projects.docs\napi_key = 'planted-value'", "names a file that is not TOML (at line 1, column 15)"),
        (DOCS.encode() * 2, "names a file that has the same name twice (at line 4, column 15)"),
        (DOCS.encode() + b"api_key = 'planted-value'", "names a file that has the same name twice (at "),
        (b"x = " + b"[" * 100_000, "names a file that is not TOML"),
        (b"x = " + b"9" * 5_000, "names a file that is not TOML"),
        (DOCS.encode() + b"#" * (1 << 20), "names a file that is larger than 1 MiB"),
    ],
)
def test_what_is_not_toml_is_not_quoted(tmp_path: Path, content: bytes, what: str) -> None:
    with pytest.raises(ConfigError, match="CONFIG names a file") as caught:
        read(tmp_path, content)
    assert str(caught.value).removeprefix(f"{PREFIX}CONFIG ").startswith(what)
    assert "planted" not in str(caught.value)


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=9) | st.integers() | st.floats() | st.none(), max_size=3))
def test_any_table_is_refused_in_words_or_read(tmp_path_factory: pytest.TempPathFactory, table: dict[str, Any]) -> None:
    lines = [f"{json.dumps(name)} = {json.dumps(value)}" for name, value in table.items() if value is not None]
    faults = []
    try:
        read(tmp_path_factory.mktemp("any"), DOCS + "\n".join(lines))
    except ConfigError as error:
        faults = error.faults
    assert all(fault.startswith(f"{PREFIX}CONFIG") and KEY not in fault for fault in faults)


def test_what_has_not_changed_keeps_its_settings(tmp_path: Path) -> None:
    projects = read(tmp_path, DOCS + SITE)
    before, file = projects.current, tmp_path / "projects.toml"
    assert not projects.look()
    file.write_text(f"# {SITE.splitlines()[0]}\n{DOCS}{SITE}")
    assert not projects.look(), "only a comment"
    file.write_text(DOCS + SITE + "rate_limit = 9")
    assert projects.look()
    assert projects.current["docs"] is before["docs"]
    assert projects.current["site"].rate_limit == 9


def test_what_is_read_later_has_the_secrets_that_the_process_has_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "projects.toml"
    file.write_text(DOCS)
    environ = {f"{PREFIX}CONFIG": str(file), f"{PREFIX}REVIEWERS": "Ada: planted-key-of-a-reviewer"}
    projects = Projects.read(environ, [])
    forget_secrets(environ)
    file.write_text(DOCS + SITE)
    assert projects.look()
    assert [one.name for one in projects.current["site"].reviewers.current] == ["Ada"]


def test_a_change_that_is_not_valid_waits_until_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    projects = read(tmp_path, DOCS)
    before, file, key = projects.current, tmp_path / "projects.toml", tmp_path / "key"
    file.write_text(DOCS + SITE.replace(f'api_key = "{OTHER_KEY}"', 'api_key_file = "key"'))
    assert not any(projects.look() for _ in range(3))
    assert (projects.current, caplog.text.count("The projects stay as they were")) == (before, 1)
    assert "project site: api_key_file names a file that cannot be read" in projects.fault
    key.write_text(OTHER_KEY)
    assert projects.look(), "though the file itself looks as before"
    assert (list(projects.current), projects.fault) == (["docs", "site"], "")
    file.unlink()
    assert not projects.look()
    assert list(projects.current) == ["docs", "site"]
    file.write_text(SITE)
    assert projects.look()
    assert list(projects.current) == ["site"]


def test_whose_key_file_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotating_secrets, "LOOK_EVERY", 0.0)
    (tmp_path / "key").write_text(OTHER_KEY)
    projects = read(tmp_path, DOCS + SITE.replace(f'api_key = "{OTHER_KEY}"', 'api_key_file = "key"'))
    (tmp_path / "key").unlink()
    warning = projects.current["site"].api_key.warning()
    assert warning.startswith("The file that api_key_file of project site names cannot be read")


def test_each_setting_is_the_processs_or_a_projects() -> None:
    of_process = ProcessSettings.model_fields.keys()
    assert {"host", "port", "data_directory", "database_url", "sandbox", "config"} <= of_process
    assert {"repository", "api_key", "agent", "budget", "paths", "checks", "egress"}.isdisjoint(of_process)
    assert of_process < JobServerSettings.model_fields.keys()


def test_what_another_process_has_served_no_longer_waits_in_the_metrics() -> None:
    counts = RunCounts()
    assert b'project="site"' in counts.render({"site": InstructionBacklog(queued=1, oldest_seconds=4_000.0)})
    assert b'project="site"' not in counts.render({})


@pytest.mark.parametrize(
    ("sandbox", "egress", "needed"),
    [("none", "open", "claude without a sandbox"), ("bubblewrap", "", "claude in bubblewrap")],
)
def test_only_a_worker_with_the_same_agent_and_sandbox_offers_a_project(
    tmp_path: Path, sandbox: str, egress: str, needed: str
) -> None:
    of_agent: dict[str, Any] = {"editor": "agent", "agent": "claude", "sandbox": sandbox, "egress": egress}
    settings = JobServerSettings(repository=str(tmp_path), api_key="planted-key-of-sixteen", **of_agent)
    other = {settings.project_id: "claude in another"}
    [words] = not_offered([other, {"site": needed}], [settings])
    assert words.startswith(f"No worker offers {needed} for project {settings.project_id}: ")
    assert not list(not_offered([other, {settings.project_id: needed}], [settings]))
