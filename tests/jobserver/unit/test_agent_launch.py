"""How agents are started: their variables, their files, and which of it is secret."""

import json
import os
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from pydantic import SecretStr

from bot.jobserver.agents.choice import agent_launch
from bot.jobserver.agents.editor import copy_state
from bot.jobserver.agents.launch import MOST_FILES, AgentLaunch, passed_variables, write_file
from bot.jobserver.agents.named import CLAUDE, CODEX, GEMINI, GOOSE, NAMED, OPENCODE, Agent, agent_for
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.settings import JobServerSettings

KEY = "planted-key-of-the-job-server"


def settings(**given: Any) -> JobServerSettings:
    return JobServerSettings(repository="/srv/docs.git", api_key=SecretStr(KEY), **given)


def launch(environment: dict[str, str] | None = None, **given: Any) -> AgentLaunch:
    return agent_launch(settings(**given), environment or {})


def test_an_agent_is_a_name_or_a_command() -> None:
    assert agent_for(("claude",)) is CLAUDE
    custom = agent_for(("/opt/bin/my-agent", "--acp"))
    assert (custom.name, custom.command) == ("my-agent", ("/opt/bin/my-agent", "--acp"))
    assert agent_for(("claude", "--x")).command == ("claude", "--x")
    assert settings(agent=("claude",)).editor == "agent"
    assert settings(agent=("claude",)).shown_model == "claude"
    assert settings(agent=("/opt/my-agent", "acp"), model="m").shown_model == "m"
    assert settings(agent=("claude",), editor="builtin").editor == "builtin"


@pytest.mark.parametrize("agent", NAMED.values(), ids=NAMED)
def test_a_named_agent_has_instructions_to_install_and_log_in(agent: Agent) -> None:
    assert agent.install.startswith("npm install --global ")
    assert agent.install[-1].isdigit()
    assert "set " in agent.login


def test_an_agent_gets_only_its_own_and_named_variables(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from a file\n")
    environment = {
        "ANTHROPIC_API_KEY_FILE": str(tmp_path / "key"),
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
        "OPENAI_API_KEY": "of another",
        "MINE": "x",
        "COPY_OF_KEY": f"x{KEY}",
    }
    made = launch(environment, agent=("claude",), pass_environment=("MINE", "COPY_OF_KEY", "UNSET"), model="m")
    got = made.program().environment
    expected = {"ANTHROPIC_API_KEY": "from a file", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "MINE": "x"}
    assert got == {**CLAUDE.environment, **expected, "ANTHROPIC_MODEL": "m"}
    assert set(made.hidden(made.program())) == {"from a file", "x"}
    assert "from a file" not in repr(made)


@pytest.mark.parametrize(
    ("agent", "model", "address", "told"),
    [
        ("claude", "opus", "", None),
        ("claude", "claude-opus-5-5", "", "claude-opus-5-5"),
        ("claude", "opus", "http://127.0.0.1:1", "opus"),
        ("codex", "gpt-5.5", "", None),
        ("codex", "ours", "http://127.0.0.1:1/v1", "ours"),
        ("goose", "gpt-4o", "", "gpt-4o"),
        ("gemini", "gemini-pro", "", "gemini-pro"),
    ],
)
def test_an_unlistable_model_is_passed_at_start(agent: str, model: str, address: str, told: str | None) -> None:
    """The agent would add any name to its list, and a wrong one would go unnoticed. A gateway has its own names."""
    keys = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k", "GOOSE_PROVIDER": "openai"}
    addresses = {"ANTHROPIC_BASE_URL": address, "OPENAI_BASE_URL": address} if address else {}
    made = launch(keys | addresses, agent=(agent,), model=model, effort="low")
    variable = made.agent.model_variable
    assert (made.model, made.wanted.model, made.wanted.effort) == (told, model, "low")
    assert variable is None or made.program().environment.get(variable) == told


def test_an_agents_own_login_may_have_unlisted_models() -> None:
    assert launch(agent=("claude",), model="us.anthropic.opus").model == "us.anthropic.opus"


def test_agents_run_in_asking_mode_and_sandboxed_codex_in_another() -> None:
    """Its own sandbox does not start in ours."""
    bare: dict[str, Any] = {"sandbox": "none", "egress": "open"}
    assert launch(agent=("claude",)).wanted.mode == launch(agent=("claude",), **bare).wanted.mode == "default"
    assert launch(agent=("codex",), **bare).wanted.mode == "workspace-write"
    assert launch(agent=("codex",)).wanted.mode == "agent-full-access"
    assert launch(agent=("/opt/my-agent",)).wanted.mode is None


def test_the_relay_accepts_any_model_of_the_agents_own_choice() -> None:
    doors = [launch({"ANTHROPIC_API_KEY": "k"}, agent=("claude",), model=model).door for model in ("default", "opus")]
    assert [door and door.model for door in doors] == [None, "opus"]


def test_an_unreadable_key_file_is_reported() -> None:
    with pytest.raises(JobServerError, match="ANTHROPIC_API_KEY_FILE"):
        launch({"ANTHROPIC_API_KEY_FILE": "/nothing/here"}, agent=("claude",))


def test_a_variable_of_the_server_takes_precedence() -> None:
    given = passed_variables(CLAUDE, (), {"CLAUDE_CODE_MAX_RETRIES": "0"}, never=[KEY])
    assert AgentLaunch(CLAUDE, given).program().environment["CLAUDE_CODE_MAX_RETRIES"] == "0"


def test_opencodes_own_server_gets_a_new_password_each_time() -> None:
    made = launch(agent=("opencode",), model="anthropic/claude")
    one, two = made.program(), made.program()
    name = "OPENCODE_SERVER_PASSWORD"
    assert len({one.environment[name], two.environment[name]}) == 2
    assert one.environment[name] in made.hidden(one)


def test_opencode_never_chooses_its_own_model(tmp_path: Path) -> None:
    with pytest.raises(JobServerError, match="PAGEHAND_JOBSERVER_MODEL"):
        launch(agent=("opencode",))
    launch(agent=("opencode",), agent_home=tmp_path)
    files = OPENCODE.files("openai/gpt", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
    config = json.loads(files[".config/opencode/opencode.json"])
    assert config["enabled_providers"] == ["openai"]
    assert config["small_model"] == "openai/gpt"
    assert config["provider"]["openai"]["options"]["baseURL"] == "http://127.0.0.1:1/v1"


def test_codex_is_configured_to_use_only_its_model() -> None:
    given = {"OPENAI_API_KEY": "planted-secret-1", "OPENAI_BASE_URL": 'http://127.0.0.1:1/"v1'}
    text = CODEX.files('gpt "5"', given)[".codex/config.toml"]
    config = tomllib.loads(text)
    provider = config["model_providers"][config["model_provider"]]
    assert (config["model"], provider["base_url"]) == ('gpt "5"', 'http://127.0.0.1:1/"v1')
    assert provider["env_key"] == "OPENAI_API_KEY"
    assert not config["analytics"]["enabled"]
    assert "planted-secret" not in text
    assert "model_provider" not in tomllib.loads(CODEX.files(None, {})[".codex/config.toml"])


def test_gemini_uses_its_key_and_sends_no_telemetry() -> None:
    config = json.loads(GEMINI.files(None, {"GEMINI_API_KEY": "x"})[".gemini/settings.json"])
    assert config["privacy"]["usageStatisticsEnabled"] is False
    assert config["security"]["auth"]["selectedType"] == "gemini-api-key"
    assert not GEMINI.resumes
    assert GOOSE.environment["GOOSE_MODE"] == "approve"


def test_a_home_starts_with_the_operators_and_our_files(tmp_path: Path) -> None:
    template, home = tmp_path / "template", tmp_path / "home"
    (template / ".codex").mkdir(parents=True)
    (template / ".codex" / "auth.json").write_text("login")
    home.mkdir()
    made = AgentLaunch(CODEX, home=template)
    made.fill(home)
    (home / ".codex" / "auth.json").write_text("renewed by the agent")
    (home / ".codex" / "config.toml").write_text("widened by the agent")
    made.fill(home)
    assert (home / ".codex" / "auth.json").read_text() == "renewed by the agent"
    assert tomllib.loads((home / ".codex" / "config.toml").read_text())["analytics"] == {"enabled": False}
    assert (home / ".codex" / "auth.json").stat().st_mode & 0o777 == 0o600
    (template / ".codex" / "config.toml").write_text("# the operator's")
    made.fill(home)
    assert "operator" not in (home / ".codex" / "config.toml").read_text()
    (home / ".codex" / "config.toml").unlink()
    made.fill(home)
    assert "operator" in (home / ".codex" / "config.toml").read_text()


@pytest.mark.parametrize("link", [".codex", ".codex/config.toml"])
def test_symlinks_left_in_a_home_are_not_followed(tmp_path: Path, link: str) -> None:
    outside, home = tmp_path / "outside", tmp_path / "home"
    outside.mkdir()
    (outside / "config.toml").write_text("safe")
    (home / ".codex").mkdir(parents=True)
    if link == ".codex":
        (home / ".codex").rmdir()
    (home / link).symlink_to(outside if link == ".codex" else outside / "config.toml")
    AgentLaunch(CODEX).fill(home)
    assert (outside / "config.toml").read_text() == "safe"
    assert list(outside.iterdir()) == [outside / "config.toml"]
    assert "analytics" in (home / ".codex" / "config.toml").read_text()
    assert not (home / link).is_symlink()


def test_a_home_that_cannot_be_filled_is_reported(tmp_path: Path) -> None:
    (tmp_path / "home" / ".codex" / "config.toml" / "x").mkdir(parents=True)
    with pytest.raises(EditError, match="HOME cannot be written"):
        AgentLaunch(CODEX).fill(tmp_path / "home")
    for number in range(MOST_FILES + 1):
        write_file(tmp_path, PurePosixPath(f"many/{number}"), b"")
    with pytest.raises(EditError, match="more than 1000 files"):
        AgentLaunch(CLAUDE, home=tmp_path / "many").fill(tmp_path)


def test_a_change_in_a_copy_is_detected_despite_equal_size_and_time(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "a.md"
    page.parent.mkdir()
    page.write_text("one")
    before = copy_state(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("x")
    (tmp_path / "empty").mkdir()
    assert copy_state(tmp_path) == before
    times = page.stat().st_atime_ns, page.stat().st_mtime_ns
    page.write_text("two")
    os.utime(page, ns=times)
    assert copy_state(tmp_path) != before
    after = copy_state(tmp_path)
    (tmp_path / "link").symlink_to("docs")
    assert copy_state(tmp_path) != after
