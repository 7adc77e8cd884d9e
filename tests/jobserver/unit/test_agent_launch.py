"""How agents are started: their variables and files, which are secret, and the relay in place of the model's key."""

import json
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from dotenv import dotenv_values
from pydantic import SecretStr, ValidationError
from support.agents.packages import package_of

from bot.errors import ConfigError
from bot.jobserver.agents.choice import model_finding
from bot.jobserver.agents.connection import Category
from bot.jobserver.agents.launch import MOST_FILES, AgentLaunch, agent_launch, write_file
from bot.jobserver.agents.named import CLAUDE, CODEX, NAMED
from bot.jobserver.egress.model_relay import RELAY_ADDRESS, relayed_login
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.agent import EXAMPLES
from bot.jobserver.settings.sandbox import OPEN
from bot.runtime.rotating_secrets import FileText, SecretFile

KEY = "planted-key-of-the-job-server"


def settings(**given: Any) -> JobServerSettings:
    return JobServerSettings(repository="/srv/docs.git", api_key=SecretStr(KEY), **given)


def launch(environment: Mapping[str, str] | None = None, **given: Any) -> AgentLaunch:
    return agent_launch(settings(**given), environment or {})


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
    ],
)
def test_an_unlistable_model_is_passed_at_start(agent: str, model: str, address: str, told: str | None) -> None:
    """The agent would add any name to its list, and a wrong one would go unnoticed. A gateway has its own names."""
    keys = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
    addresses = {"ANTHROPIC_BASE_URL": address, "OPENAI_BASE_URL": address} if address else {}
    made = launch(keys | addresses, agent=(agent,), model=model, effort="low")
    variable = made.agent.model_variable
    assert (made.model, made.wanted[Category.MODEL], made.wanted[Category.EFFORT]) == (told, model, "low")
    assert variable is None or made.program().environment.get(variable) == told


def test_an_instructions_model_and_effort_replace_the_settings_for_its_run() -> None:
    """An effort of the settings is for their model: others may lack it. A session may have used any of the choices."""
    of_settings = launch({"ANTHROPIC_API_KEY": "k"}, agent=("claude",), model="opus", effort="max", models=("haiku",))
    assert of_settings.choosing("", "") == of_settings
    for model, effort, at_start, dispensable in (
        ("haiku", "", None, (Category.EFFORT,)),
        ("claude-haiku-5", "low", "claude-haiku-5", ()),
        ("", "low", None, ()),
    ):
        made = of_settings.choosing(model, effort)
        assert made.wanted == {
            Category.MODE: "default", Category.MODEL: model or "opus", Category.EFFORT: effort or "max"
        }  # fmt: skip
        assert (made.model, made.dispensable) == (at_start, dispensable)
        assert made.login is not None
        assert (made.login.model, made.login.choices) == ("opus", ("haiku",))
    other = launch(agent=("/opt/mine", "--model={model}"), model="m").choosing("n", "")
    assert other.program().arguments == ("/opt/mine", "--model=n")


def test_an_agents_own_login_may_have_unlisted_models() -> None:
    assert launch(agent=("claude",), model="us.anthropic.opus").model == "us.anthropic.opus"


def test_agents_run_in_asking_mode_and_sandboxed_codex_in_another() -> None:
    """Its own sandbox does not start in ours."""
    bare: dict[str, Any] = {"sandbox": "none", "egress": "open"}
    assert (
        launch(agent=("claude",)).wanted[Category.MODE]
        == launch(agent=("claude",), **bare).wanted[Category.MODE]
        == "default"
    )
    assert launch(agent=("codex",), **bare).wanted[Category.MODE] == "workspace-write"
    assert launch(agent=("codex",)).wanted[Category.MODE] == "agent-full-access"
    assert Category.MODE not in launch(agent=("/opt/my-agent",)).wanted


def test_the_relay_accepts_any_model_of_the_agents_own_choice() -> None:
    doors = [launch({"ANTHROPIC_API_KEY": "k"}, agent=("claude",), model=model).login for model in ("default", "opus")]
    assert [door and door.model for door in doors] == [None, "opus"]


MODEL: dict[str, Any] = {"model_api": "openai", "model_key": SecretStr("the model's key")}


@pytest.mark.parametrize("bare", [{}, {"sandbox": "none", "egress": "open"}], ids=["relayed", "own network"])
async def test_a_programs_variables_and_options_are_settings(bare: dict[str, Any]) -> None:
    """Each start has a new password; the model's address and key are the relay's, unless there is none."""
    variables = (
        '# its own\nMODE=auto\n\nCONFIG={"url": "{model_url}", "model": "{model}"}\nKEY={model_key}\nPW={random}'
    )
    agent = ("/opt/my-agent", "--url={model_url}")
    made = launch(agent=agent, agent_environment=variables, model="m", **MODEL, **bare)
    async with made.opened(lambda _: None) as run:
        one, two = run.program(), run.program()
        address = "https://api.openai.com/v1" if bare else f"{RELAY_ADDRESS}/v1"
        assert one.arguments == ("/opt/my-agent", f"--url={address}")
        got = one.environment
        assert (got["MODE"], json.loads(got["CONFIG"])) == ("auto", {"url": address, "model": "m"})
        assert got["KEY"] == got["OPENAI_API_KEY"]
        assert (got["KEY"] == "the model's key") == bool(bare)
        assert got["OPENAI_BASE_URL"] == address
        assert len({got["PW"], two.environment["PW"], ""}) == 3
        assert {got["PW"], got["KEY"]} <= set(run.hidden(one))
        assert "auto" not in run.hidden(one)


def test_a_set_variable_wins_unless_the_models_key_is_in_it() -> None:
    """The agent's own ones are only withheld while the relay stands in for them."""
    given = "CLAUDE_CODE_MAX_RETRIES=1\nCOPY=Bearer the model's key"
    made = launch({"CLAUDE_CODE_MAX_RETRIES": "2"}, agent=("claude",), agent_environment=given, **MODEL)
    assert made.program().environment["CLAUDE_CODE_MAX_RETRIES"] == "1"
    assert made.login is not None
    assert made.login.removed_from(made.variables) == {"CLAUDE_CODE_MAX_RETRIES": "1"}


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        ({"agent": ("a", "--url={model_url}")}, "MODEL_API"),
        ({"agent": ("a",), "agent_environment": "KEY={model_key}"}, "MODEL_API"),
        ({"agent": ("a",), "agent_environment": "M={model}", **MODEL}, "MODEL$"),
    ],
)
def test_a_placeholder_without_a_value_is_refused(given: dict[str, Any], needed: str) -> None:
    with pytest.raises(JobServerError, match=f"set PAGEHAND_JOBSERVER_{needed}"):
        launch(**given)


@pytest.mark.parametrize("given", ["MODE", "=x", "A B=x", "A=1\nA=2"])
def test_variables_are_lines_with_a_name(given: str) -> None:
    with pytest.raises(ValidationError, match="must be lines of NAME=value"):
        settings(agent=("a",), agent_environment=given)


@pytest.mark.parametrize("name", ["gemini", "goose", "opencode"])
def test_a_former_name_is_refused_with_the_settings_that_replace_it(name: str) -> None:
    environment = {f"PAGEHAND_JOBSERVER_{key}": value for key, value in {"REPOSITORY": "/r", "API_KEY": KEY}.items()}
    with pytest.raises(ConfigError) as refused:
        JobServerSettings.from_environment({**environment, "PAGEHAND_JOBSERVER_AGENT": name})
    told = str(refused.value)
    assert "PAGEHAND_JOBSERVER_AGENT is replaced by these settings" in told
    assert told.endswith((EXAMPLES / f"{name}.env").read_text(encoding="utf-8"))
    with pytest.raises(ConfigError, match="is replaced"):
        JobServerSettings.from_environment(environment, agent=name)
    shown = dotenv_values(EXAMPLES / f"{name}.env") | {"PAGEHAND_JOBSERVER_MODEL_KEY_FILE": __file__}
    replaced = JobServerSettings.from_environment({**environment, **{key: value or "" for key, value in shown.items()}})
    assert agent_launch(replaced, {}).login is not None


def test_codex_is_configured_to_use_only_its_model() -> None:
    given = {"OPENAI_API_KEY": "planted-secret-1", "OPENAI_BASE_URL": 'http://127.0.0.1:1/"v1'}
    text = CODEX.files('gpt "5"', given)[".codex/config.toml"]
    config = tomllib.loads(text)
    provider = config["model_providers"][config["model_provider"]]
    assert (config["model"], provider["base_url"]) == ('gpt "5"', 'http://127.0.0.1:1/"v1')
    assert provider["env_key"] == "OPENAI_API_KEY"
    assert not config["analytics"]["enabled"]
    relayed = CODEX.files(None, given | {"OPENAI_BASE_URL": f"{RELAY_ADDRESS}/v1"})[".codex/config.toml"]
    assert tomllib.loads(relayed)["web_search"] == "disabled"
    assert "planted-secret" not in text
    assert "model_provider" not in tomllib.loads(CODEX.files(None, {})[".codex/config.toml"])


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


def test_no_model_decides_what_claude_may_do(tmp_path: Path) -> None:
    """Nor does what it left in its HOME, such as commands that run before its tools."""
    AgentLaunch(CLAUDE).fill(tmp_path)
    settings = tmp_path / ".claude" / "settings.json"
    settings.write_text('{"hooks": {}}')
    AgentLaunch(CLAUDE).fill(tmp_path)
    assert json.loads(settings.read_text()) == {"disableAutoMode": "disable"}


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


MODEL_KEY = "planted-key-of-the-model"


@asynccontextmanager
async def opened(environment: Mapping[str, str], **given: Any) -> AsyncIterator[AgentLaunch]:
    async with launch(environment, **given).opened(lambda _: None) as opened:
        yield opened


def files_holding(text: str, folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


LOGINS = {
    "claude": ("claude", {"ANTHROPIC_API_KEY": MODEL_KEY}, "ANTHROPIC_BASE_URL", "", "https://api.anthropic.com/v1"),
    "claude's subscription": (
        "claude", {"CLAUDE_CODE_OAUTH_TOKEN": MODEL_KEY}, "ANTHROPIC_BASE_URL", "", "https://api.anthropic.com/v1",
    ),
    "claude's gateway": (
        "claude", {"ANTHROPIC_AUTH_TOKEN": MODEL_KEY, "ANTHROPIC_BASE_URL": "https://gw.example/a/"},
        "ANTHROPIC_BASE_URL", "", "https://gw.example/a/v1",
    ),
    "codex": ("codex", {"OPENAI_API_KEY": MODEL_KEY}, "OPENAI_BASE_URL", "/v1", "https://api.openai.com/v1"),
    "codex' gateway": (
        "codex", {"CODEX_API_KEY": MODEL_KEY, "OPENAI_BASE_URL": "https://gw.example/openai"},
        "OPENAI_BASE_URL", "/v1", "https://gw.example/openai",
    ),
}  # fmt: skip


@pytest.mark.parametrize("login", LOGINS.values(), ids=LOGINS)
async def test_an_agent_is_told_of_the_relay_and_never_of_the_key(login: tuple[Any, ...], tmp_path: Path) -> None:
    agent, environment, variable, suffix, upstream = login
    made = launch(environment, agent=(agent,))
    assert made.login is not None
    assert made.login.upstream == upstream
    async with made.opened(lambda _: None) as relayed:
        program = relayed.program()
        assert program.environment[variable] == f"{RELAY_ADDRESS}{suffix}"
        assert program.environment[made.login.key_variable] != MODEL_KEY
        assert MODEL_KEY not in str({**program.environment})
        assert [door.port for door in program.doors] == [8701]
        assert MODEL_KEY in relayed.hidden(program)
        assert MODEL_KEY not in repr(relayed)
        relayed.fill(tmp_path)
        assert not files_holding(MODEL_KEY, tmp_path)


@pytest.mark.parametrize("given", [{"agent": ("claude",)}, {"agent": ("my-agent",), "model_api": "anthropic"}])
def test_an_unusable_proxy_is_reported_before_any_job(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would fail every request; an address that needs no proxy is unaffected."""
    monkeypatch.setenv("HTTPS_PROXY", "socks5://127.0.0.1:1080")
    key = SecretStr(MODEL_KEY) if "model_api" in given else None
    with pytest.raises(JobServerError, match="must be http://host:port"):
        launch({"ANTHROPIC_API_KEY": MODEL_KEY}, **given, model_key=key)
    monkeypatch.setenv("NO_PROXY", "api.anthropic.com")
    assert launch({"ANTHROPIC_API_KEY": MODEL_KEY}, **given, model_key=key).login is not None


@pytest.mark.parametrize("given", [{"egress": OPEN}, {"egress": OPEN, "sandbox": "none"}])
async def test_with_its_own_network_an_agent_logs_in_itself(given: dict[str, Any]) -> None:
    async with opened({"ANTHROPIC_API_KEY": MODEL_KEY}, agent=("claude",), **given) as run:
        program = run.program()
        assert (program.environment["ANTHROPIC_API_KEY"], program.doors) == (MODEL_KEY, ())


async def test_a_login_the_relay_does_not_support_is_unchanged(tmp_path: Path) -> None:
    """Such as a file in AGENT_HOME."""
    (tmp_path / "auth.json").write_text("login")
    async with opened({}, agent=("codex",), agent_home=tmp_path) as run:
        assert run.program().doors == ()


async def test_a_known_agents_own_keys_are_withheld_if_settings_name_its_model() -> None:
    environment = {"ANTHROPIC_AUTH_TOKEN": "another-key", "ANTHROPIC_BASE_URL": "https://gw.example"}
    given: dict[str, Any] = {"model_api": "anthropic", "model_key": SecretStr(MODEL_KEY)}
    async with opened(environment, agent=("claude",), **given) as run:
        got = run.program().environment
    assert "ANTHROPIC_AUTH_TOKEN" not in got
    assert got["ANTHROPIC_BASE_URL"] == RELAY_ADDRESS


@pytest.mark.parametrize(
    "address", ["gw.example", "ftp://gw.example", "https://user:pass@gw.example", "https://gw.example?x=y", "https://"]
)
def test_an_invalid_address_or_one_with_a_password_is_reported_early(address: str) -> None:
    environment = {"ANTHROPIC_API_KEY": MODEL_KEY, "ANTHROPIC_BASE_URL": address}
    with pytest.raises(JobServerError, match="ANTHROPIC_BASE_URL must be an address") as failed:
        launch(environment, agent=("claude",))
    assert "pass@" not in str(failed.value)


def test_a_commands_model_is_configured_by_settings(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "model_api": "openai", "model_key": SecretStr(MODEL_KEY), "model_url": "https://gw.example/v1",
        "model_key_header": "Api-Key",
    }  # fmt: skip
    login = relayed_login(settings(**given))
    assert login is not None
    assert (login.upstream, login.header, login.key()) == ("https://gw.example/v1", "api-key", MODEL_KEY)
    file = SecretFile(tmp_path / "key", "MODEL_KEY_FILE")
    file.path.write_text("rotated\n")
    login = relayed_login(settings(**given | {"model_key": FileText("old", file)}))
    assert login is not None
    assert login.key() == "rotated"
    assert relayed_login(settings(**given, sandbox="none", egress=OPEN)) is None
    assert relayed_login(settings()) is None


@pytest.mark.parametrize(
    ("given", "environment", "is_good", "said"),
    [
        (
            {"agent": ("claude",)},
            {"ANTHROPIC_API_KEY": MODEL_KEY},
            True,
            "https://api.anthropic.com/v1 with ANTHROPIC_API_KEY",
        ),
        ({"agent": ("claude",)}, {"CLAUDE_CODE_USE_BEDROCK": "1"}, False, "set a gateway's address"),
        ({"agent": ("codex",), "egress": "chatgpt.com:443"}, {}, True, "its login is in the sandbox"),
        ({"agent": ("my-agent",)}, {}, True, "MODEL_API"),
    ],
)
def test_the_check_shows_how_the_model_is_reached(
    given: dict[str, Any], environment: dict[str, str], said: str, *, is_good: bool
) -> None:
    configured = settings(**given)
    found = model_finding(launch(environment, **given), configured)
    assert found.is_ok == is_good
    assert said in found.message
    assert MODEL_KEY not in found.message


PAGE = Path(__file__).parents[3] / "bot" / "docs" / "agents.md"


@pytest.mark.parametrize("name", sorted(NAMED))
def test_the_documentation_names_the_version_of(name: str) -> None:
    package = package_of(NAMED[name])
    assert f"{package.name}@{package.version}" in PAGE.read_text(encoding="utf-8")
