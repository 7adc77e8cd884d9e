"""The agents known by name: how to start each, how to make it safe, and how it differs from the others.

Each was tested in the version that bot/docs/agents.md names.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bot.jobserver.egress.model_api import ModelApi
from bot.jobserver.egress.model_relay import RELAY_ADDRESS
from bot.jobserver.egress.providers import ANTHROPIC, OPENAI

Files = Mapping[str, str]
"""File contents by path in HOME."""


@dataclass(frozen=True)
class Agent:
    """A program that supports the Agent Client Protocol.

    `environment` is set for it; from the server's variables it gets `keys`, `address_variables`, `passed` and those in
    PASS_ENVIRONMENT. `mode` is the session mode in which it asks before it acts, `mode_in_sandbox` the one to use in a
    sandbox, if another, `plan_mode` that in which it ends with a plan. `model_variable` sets the model when it starts.
    Models that match `listed_models` are instead set as a session option, which must list them, if the provider itself
    serves them. `files` returns the initial files of its HOME. `login` explains how to log in: with the first of `keys`
    that is set, the relay does it at `api`. `client_meta` is sent on initialization. `install` installs the tested
    version, and of what that pulls in the newest at that date. `caches` are folders in HOME that need not be kept,
    in addition to those of common programs. `reports_usage_per_turn`: the usage it reports is that of a turn, not of
    the session as the protocol defines.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    api: ModelApi | None = None
    mode: str | None = None
    mode_in_sandbox: str | None = None
    plan_mode: str | None = None
    model_variable: str | None = None
    listed_models: re.Pattern[str] | None = None
    files: Callable[[str | None, Mapping[str, str]], Files] = lambda _model, _environment: {}
    login: str = "log it in as its documentation says, by variables that PASS_ENVIRONMENT names or files in AGENT_HOME"
    client_meta: Mapping[str, Any] = field(default_factory=dict)
    install: str = ""
    caches: tuple[str, ...] = ()
    reports_usage_per_turn: bool = False

    @property
    def address_variables(self) -> tuple[str, ...]:
        """The variables that say where its model is, and who pays for it."""
        return (self.api.address_variable, *self.api.account_headers) if self.api else ()


def _codex_files(model: str | None, environment: Mapping[str, str]) -> Files:
    lines = [f"model = {json.dumps(model)}"] if model else []
    lines += ["check_for_update_on_startup = false"]
    key = next((name for name in CODEX.keys if name in environment), None)
    address = environment.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
    lines += ['model_provider = "pagehand"'] if key else []
    # The search runs at OpenAI, which the relay refuses.
    lines += ['web_search = "disabled"'] if address.startswith(RELAY_ADDRESS) else []
    lines += ["[analytics]", "enabled = false", "[features]", "plugins = false", "apps = false"]
    # Otherwise it asks only in plan mode.
    lines += ["default_mode_request_user_input = true"]
    if key:
        lines += ["[model_providers.pagehand]", 'name = "OpenAI"', f"base_url = {json.dumps(address)}"]
        lines += ['wire_api = "responses"', f'env_key = "{key}"', "request_max_retries = 4", "stream_max_retries = 4"]
    return {".codex/config.toml": "\n".join([*lines, ""])}


CLAUDE = Agent(
    name="claude",
    reports_usage_per_turn=True,
    install="npm install --global @agentclientprotocol/claude-agent-acp@0.101.0 --before=2026-11-27",
    caches=(".claude/backups", ".claude/debug", ".claude/shell-snapshots", ".claude/statsig", ".claude/telemetry"),
    command=("claude-agent-acp",),
    environment={
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        # Otherwise, after each turn, it asks its model what the user might type next.
        "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false",
        # The default of ten means three minutes of silence.
        "CLAUDE_CODE_MAX_RETRIES": "4",
        "NO_BROWSER": "1",
    },
    # In Claude Code's own order.
    keys=("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"),
    passed=("CLAUDE_CODE_MAX_RETRIES",),
    api=ANTHROPIC,
    mode="default",
    plan_mode="plan",
    model_variable="ANTHROPIC_MODEL",
    # It lists models by one word each, but also accepts full names.
    listed_models=re.compile(r"(?!claude-).+"),
    # Otherwise a model decides in its plan mode, and nobody is asked.
    files=lambda _model, _environment: {".claude/settings.json": '{"disableAutoMode": "disable"}\n'},
    login="set ANTHROPIC_API_KEY, or CLAUDE_CODE_OAUTH_TOKEN as `claude setup-token` prints it",
)
CODEX = Agent(
    name="codex",
    install="npm install --global @agentclientprotocol/codex-acp@2.6.0 --before=2026-11-27",
    caches=(".codex/log", ".codex/shell_snapshots", ".codex/skills/.system", ".codex/tmp"),
    command=("codex-acp",),
    # As for Claude.
    environment={"CODEX_ACP_PROMPT_SUGGESTIONS": "false", "NO_BROWSER": "1"},
    # In its mode `agent`, a model call decides what may leave its sandbox, and nobody is asked.
    mode="workspace-write",
    # Its own sandbox cannot start inside ours, and without a shell it cannot even read files.
    mode_in_sandbox="agent-full-access",
    listed_models=re.compile(r".+"),
    keys=("CODEX_API_KEY", "OPENAI_API_KEY"),
    api=OPENAI,
    files=_codex_files,
    login="set OPENAI_API_KEY, or put .codex/auth.json into AGENT_HOME",
    # Not for Claude, whose adapter would then report errors as successful turns.
    client_meta={"jetbrains": {"air": {"version": 1, "capabilities": ["sessionFailure"]}}},
)
NAMED = {agent.name: agent for agent in (CLAUDE, CODEX)}


def agent_for(command: tuple[str, ...]) -> Agent:
    """Returns the named agent, or an agent for any other command."""
    if len(command) == 1 and command[0] in NAMED:
        return NAMED[command[0]]
    return Agent(name=command[0].rpartition("/")[2], command=command)
