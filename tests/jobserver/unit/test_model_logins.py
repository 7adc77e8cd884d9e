"""How agents are pointed to the relay instead of their key, and where the relay finds the key."""

import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.jobserver.agents.choice import model_finding
from bot.jobserver.agents.launch import AgentLaunch, agent_launch
from bot.jobserver.egress.model_relay import RELAY_ADDRESS, relayed_login
from bot.jobserver.errors import EditError, JobServerError
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.sandbox import OPEN

KEY = "planted-key-of-the-model"


def files_holding(text: str, folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def settings(**given: Any) -> JobServerSettings:
    values = {
        "repository": "/srv/docs.git",
        "api_key": SecretStr("planted-key-of-the-job-server"),
        "egress": (),
        **given,
    }
    return JobServerSettings(**values)


@asynccontextmanager
async def opened(environment: Mapping[str, str], **given: Any) -> AsyncIterator[AgentLaunch]:
    async with agent_launch(settings(**given), environment).opened(lambda _: None) as launch:
        yield launch


LOGINS = {
    "claude": ("claude", None, {"ANTHROPIC_API_KEY": KEY}, "ANTHROPIC_BASE_URL", "", "https://api.anthropic.com/v1"),
    "claude's subscription": (
        "claude", None, {"CLAUDE_CODE_OAUTH_TOKEN": KEY}, "ANTHROPIC_BASE_URL", "", "https://api.anthropic.com/v1",
    ),
    "claude's gateway": (
        "claude", None, {"ANTHROPIC_AUTH_TOKEN": KEY, "ANTHROPIC_BASE_URL": "https://gw.example/a/"},
        "ANTHROPIC_BASE_URL", "", "https://gw.example/a/v1",
    ),
    "codex": ("codex", None, {"OPENAI_API_KEY": KEY}, "OPENAI_BASE_URL", "/v1", "https://api.openai.com/v1"),
    "codex' gateway": (
        "codex", None, {"CODEX_API_KEY": KEY, "OPENAI_BASE_URL": "https://gw.example/openai"},
        "OPENAI_BASE_URL", "/v1", "https://gw.example/openai",
    ),
}  # fmt: skip


@pytest.mark.parametrize("login", LOGINS.values(), ids=LOGINS)
async def test_an_agent_is_told_of_the_relay_and_never_of_the_key(login: tuple[Any, ...], tmp_path: Path) -> None:
    agent, model, environment, variable, suffix, upstream = login
    launch = agent_launch(settings(agent=(agent,), model=model), environment)
    assert launch.login is not None
    assert launch.login.upstream == upstream
    async with launch.opened(lambda _: None) as relayed:
        program = relayed.program()
        assert program.environment[variable] == f"{RELAY_ADDRESS}{suffix}"
        assert program.environment[launch.login.key_variable] != KEY
        assert KEY not in str({**program.environment})
        assert [door.port for door in program.doors] == [8701]
        assert KEY in relayed.hidden(program)
        assert KEY not in repr(relayed)
        relayed.fill(tmp_path)
        assert not files_holding(KEY, tmp_path)


@pytest.mark.parametrize("given", [{"agent": ("claude",)}, {"agent": ("my-agent",), "model_api": "anthropic"}])
def test_an_unusable_proxy_is_reported_before_any_job(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would fail every request; an address that needs no proxy is unaffected."""
    monkeypatch.setenv("HTTPS_PROXY", "socks5://127.0.0.1:1080")
    key = SecretStr(KEY) if "model_api" in given else None
    with pytest.raises(JobServerError, match="must be http://host:port"):
        agent_launch(settings(**given, model_key=key), {"ANTHROPIC_API_KEY": KEY})
    monkeypatch.setenv("NO_PROXY", "api.anthropic.com")
    assert agent_launch(settings(**given, model_key=key), {"ANTHROPIC_API_KEY": KEY}).login is not None


async def test_each_run_has_its_own_token() -> None:
    one = agent_launch(settings(agent=("claude",)), {"ANTHROPIC_API_KEY": KEY})
    async with one.opened(lambda _: None) as first, one.opened(lambda _: None) as second:
        tokens = {launch.program().environment["ANTHROPIC_API_KEY"] for launch in (first, second)}
        assert len(tokens) == 2


@pytest.mark.parametrize("given", [{"egress": OPEN}, {"egress": OPEN, "sandbox": "none"}])
async def test_with_its_own_network_an_agent_logs_in_itself(given: dict[str, Any]) -> None:
    async with opened({"ANTHROPIC_API_KEY": KEY}, agent=("claude",), **given) as launch:
        program = launch.program()
        assert (program.environment["ANTHROPIC_API_KEY"], program.doors) == (KEY, ())


async def test_a_login_the_relay_does_not_support_is_unchanged(tmp_path: Path) -> None:
    """Such as a file in AGENT_HOME."""
    (tmp_path / "auth.json").write_text("login")
    async with opened({}, agent=("codex",), agent_home=tmp_path) as launch:
        assert launch.program().doors == ()


async def test_codex_does_not_have_openai_search_the_web() -> None:
    async with opened({"OPENAI_API_KEY": KEY}, agent=("codex",)) as launch:
        config = tomllib.loads(launch.agent.files(None, launch.passed)[".codex/config.toml"])
    assert config["web_search"] == "disabled"
    assert config["model_providers"]["pagehand"]["base_url"] == f"{RELAY_ADDRESS}/v1"


async def test_a_known_agents_own_keys_are_withheld_if_settings_name_its_model() -> None:
    environment = {"ANTHROPIC_AUTH_TOKEN": "another-key", "ANTHROPIC_BASE_URL": "https://gw.example"}
    given: dict[str, Any] = {"model_api": "anthropic", "model_key": SecretStr(KEY)}
    async with opened(environment, agent=("claude",), **given) as launch:
        got = launch.program().environment
    assert "ANTHROPIC_AUTH_TOKEN" not in got
    assert got["ANTHROPIC_BASE_URL"] == RELAY_ADDRESS


async def test_a_passed_variable_that_contains_the_key_is_withheld() -> None:
    environment = {"ANTHROPIC_API_KEY": KEY, "COPY": f"Bearer {KEY}", "MINE": "x", "CLAUDE_CODE_MAX_RETRIES": "1"}
    async with opened(environment, agent=("claude",), pass_environment=("COPY", "MINE")) as launch:
        got = launch.program().environment
    assert "COPY" not in got
    assert (got["MINE"], got["CLAUDE_CODE_MAX_RETRIES"]) == ("x", "1")


def test_the_key_is_reloaded_each_time(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("first\n")
    launch = agent_launch(settings(agent=("claude",)), {"ANTHROPIC_API_KEY_FILE": str(file)})
    assert launch.login is not None
    login = launch.login
    assert login.key() == "first"
    file.write_text("second\n")
    assert login.key() == "second"


@pytest.mark.parametrize(
    "address", ["gw.example", "ftp://gw.example", "https://user:pass@gw.example", "https://gw.example?x=y", "https://"]
)
def test_an_invalid_address_or_one_with_a_password_is_reported_early(address: str) -> None:
    environment = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": address}
    with pytest.raises(JobServerError, match="ANTHROPIC_BASE_URL must be an address") as failed:
        agent_launch(settings(agent=("claude",)), environment)
    assert "pass@" not in str(failed.value)


async def test_an_unknown_agent_and_a_command_are_configured_by_settings(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "model_api": "openai", "model_key": SecretStr(KEY), "model_url": "https://gw.example/v1",
        "model_key_header": "Api-Key",
    }  # fmt: skip
    async with opened({}, agent=("my-agent", "--base={model_url}"), **given) as launch:
        program = launch.program()
        assert program.arguments == ("my-agent", f"--base={RELAY_ADDRESS}/v1")
        assert program.environment["OPENAI_BASE_URL"] == f"{RELAY_ADDRESS}/v1"
        assert program.environment["OPENAI_API_KEY"] != KEY
    login = relayed_login(settings(**given))
    assert login is not None
    assert (login.upstream, login.header, login.key()) == ("https://gw.example/v1", "api-key", KEY)
    (tmp_path / "key").write_text("rotated\n")
    login = relayed_login(settings(**given, model_key_file=tmp_path / "key"))
    assert login is not None
    assert login.key() == "rotated"
    assert relayed_login(settings(**given, sandbox="none", egress=OPEN)) is None
    assert relayed_login(settings()) is None


async def test_a_missing_key_is_a_reason(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)
    launch = agent_launch(settings(agent=("claude",)), {"ANTHROPIC_API_KEY_FILE": str(file)})
    file.unlink()
    with pytest.raises(EditError, match="ANTHROPIC_API_KEY_FILE names a file that cannot be read"):
        async with launch.opened(lambda _: None):
            pass


@pytest.mark.parametrize(
    ("given", "environment", "is_good", "said"),
    [
        (
            {"agent": ("claude",)},
            {"ANTHROPIC_API_KEY": KEY},
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
    found = model_finding(agent_launch(configured, environment), configured)
    assert found.is_ok == is_good
    assert said in found.message
    assert KEY not in found.message
