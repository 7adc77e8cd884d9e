"""The agents known by name: how to start each, how to make it safe, and how it differs from the others.

Each was tested in the version that the job server's README names.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bot.jobserver.agents.failures import FailureRule, codex_failure, goose_failure, never
from bot.jobserver.agents.model_logins import (
    LoginRule,
    claude_login,
    codex_login,
    gemini_login,
    goose_login,
    no_login,
    opencode_login,
)
from bot.jobserver.agents.progress import ToolCall
from bot.jobserver.egress.model_door import RELAY_ADDRESS

Files = Mapping[str, str]
"""File contents by path in HOME."""
_GEMINI_ACCESS = "Allow access to absolute path: "
_OPENAI = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORGANIZATION", "OPENAI_PROJECT")
_ANTHROPIC = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL")
_GOOGLE = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL")


def _no_files(_model: str | None, _environment: Mapping[str, str]) -> Files:
    return {}


def _unchanged(call: ToolCall) -> ToolCall:
    return call


@dataclass(frozen=True)
class Agent:
    """A program that supports the Agent Client Protocol.

    `environment` is set for it, and each of `random_variables` gets a random password; from the server's variables it
    gets `passed` and those in PASS_ENVIRONMENT. `mode` is the session mode in which it asks before it acts,
    `mode_in_sandbox` the one to use in a sandbox, if another. `model_variable` sets the model when it starts. Models
    that match `listed_models` are instead set as a session option, which must list them, if the provider itself serves
    them. `files` returns the initial files of its HOME. `resumes`: whether its sessions can be resumed. `login`
    explains how to log in; `model_login` finds that login for the relay. `client_meta` is sent on initialization.
    `tool_kinds`: see `ToolCalls`; `completed` fills in parts of a call that it reports in an unusual place. `install`
    installs the tested version, and of what that pulls in the newest at that
    date. `caches` are folders in HOME that need not be kept, in addition to those of common programs.
    `reports_usage_per_turn`: the usage it reports is that of a turn, not of the session as the protocol
    defines.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    random_variables: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()
    mode: str | None = None
    mode_in_sandbox: str | None = None
    model_variable: str | None = None
    listed_models: re.Pattern[str] | None = None
    needs_model: bool = False
    files: Callable[[str | None, Mapping[str, str]], Files] = _no_files
    resumes: bool = True
    failed: FailureRule = never
    login: str = "log it in as its documentation says, by variables that PASS_ENVIRONMENT names or files in AGENT_HOME"
    model_login: LoginRule = no_login
    client_meta: Mapping[str, Any] = field(default_factory=dict)
    tool_kinds: Mapping[str, str] = field(default_factory=dict)
    completed: Callable[[ToolCall], ToolCall] = _unchanged
    install: str = ""
    caches: tuple[str, ...] = ()
    reports_usage_per_turn: bool = False


def _codex_files(model: str | None, environment: Mapping[str, str]) -> Files:
    lines = [f"model = {json.dumps(model)}"] if model else []
    lines += ["check_for_update_on_startup = false"]
    key = next((name for name in ("CODEX_API_KEY", "OPENAI_API_KEY") if name in environment), None)
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


def _gemini_files(_: str | None, environment: Mapping[str, str]) -> Files:
    settings: dict[str, Any] = {
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    }
    if "GEMINI_API_KEY" in environment:
        settings["security"] = {"auth": {"selectedType": "gemini-api-key"}}
    return {".gemini/settings.json": json.dumps(settings)}


def _gemini_call(call: ToolCall) -> ToolCall:
    """Gemini reports commands, and paths of attachments, in the title only."""
    if call.input != "" or not call.has_whole_title:
        return call
    if call.kind == "execute":
        return replace(call, command=call.title)
    if call.kind == "read" and not call.paths and call.title.startswith(_GEMINI_ACCESS):
        return replace(call, paths=(call.title.removeprefix(_GEMINI_ACCESS),))
    return call


def _opencode_files(model: str | None, environment: Mapping[str, str]) -> Files:
    settings: dict[str, Any] = {"autoupdate": False, "share": "disabled"}
    if model:
        provider = model.partition("/")[0]
        settings |= {"small_model": model, "enabled_providers": [provider]}
        if address := environment.get(f"{provider.upper()}_BASE_URL"):
            settings["provider"] = {provider: {"options": {"baseURL": address}}}
    return {".config/opencode/opencode.json": json.dumps(settings)}


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
    passed=(*_ANTHROPIC, "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_MAX_RETRIES"),
    mode="default",
    model_variable="ANTHROPIC_MODEL",
    # It lists models by one word each, but also accepts full names.
    listed_models=re.compile(r"(?!claude-).+"),
    model_login=claude_login,
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
    passed=("CODEX_API_KEY", *_OPENAI),
    files=_codex_files,
    failed=codex_failure,
    model_login=codex_login,
    login="set OPENAI_API_KEY, or put .codex/auth.json into AGENT_HOME",
    # Not for Claude, whose adapter would then report errors as successful turns.
    client_meta={"jetbrains": {"air": {"version": 1, "capabilities": ["sessionFailure"]}}},
)
GEMINI = Agent(
    name="gemini",
    install="npm install --global @google/gemini-cli@0.61.0 --before=2026-11-27",
    caches=(".gemini/history", ".gemini/tmp"),
    command=("gemini", "--acp"),
    environment={"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true", "NO_BROWSER": "1"},
    passed=_GOOGLE,
    model_variable="GEMINI_MODEL",
    files=_gemini_files,
    # Loading a session within the same clock minute as its last start empties it, and the replay of earlier turns
    # arrives in the middle of the next one.
    resumes=False,
    completed=_gemini_call,
    model_login=gemini_login,
    login="set GEMINI_API_KEY",
)
OPENCODE = Agent(
    name="opencode",
    install="npm install --global opencode-ai@1.18.33 --before=2026-11-27",
    caches=(
        ".config/opencode/node_modules", ".local/share/opencode/bin", ".local/share/opencode/log",
        ".local/share/opencode/repos", ".local/state/opencode",
    ),
    command=("opencode", "acp"),
    environment={
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_PERMISSION": json.dumps({
            "edit": "ask", "bash": "ask", "webfetch": "ask", "websearch": "ask", "external_directory": "ask",
        }),
    },
    # It opens a local HTTP API that reveals the key to anyone.
    random_variables=("OPENCODE_SERVER_PASSWORD",),
    passed=(*_ANTHROPIC, *_OPENAI, "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "OPENROUTER_API_KEY"),
    # Without a model, it uses a free one on third-party servers.
    needs_model=True,
    files=_opencode_files,
    model_login=opencode_login,
    login="set the key of the provider that MODEL begins with, such as ANTHROPIC_API_KEY",
)  # fmt: skip
GOOSE = Agent(
    name="goose",
    install="npm install --global @aaif/goose@0.20.1 --before=2026-11-27",
    caches=(".local/state/goose/logs",),
    command=("goose", "acp"),
    environment={"GOOSE_DISABLE_KEYRING": "1", "GOOSE_MODE": "approve", "GOOSE_TELEMETRY_ENABLED": "false"},
    passed=(
        "GOOSE_PROVIDER", "GOOSE_MODEL", "OPENAI_HOST", "ANTHROPIC_HOST", *_OPENAI, *_ANTHROPIC, "GOOGLE_API_KEY",
        "OPENROUTER_API_KEY",
    ),
    model_variable="GOOSE_MODEL",
    needs_model=True,
    failed=goose_failure,
    tool_kinds={
        "developer/write": "edit", "developer/edit": "edit", "developer/tree": "read", "developer/shell": "execute",
    },
    model_login=goose_login,
    login="set GOOSE_PROVIDER, such as openai, and its key, such as OPENAI_API_KEY",
)  # fmt: skip
NAMED = {agent.name: agent for agent in (CLAUDE, CODEX, GEMINI, OPENCODE, GOOSE)}


def agent_for(command: tuple[str, ...]) -> Agent:
    """Returns the named agent, or an agent for any other command."""
    if len(command) == 1 and command[0] in NAMED:
        return NAMED[command[0]]
    return Agent(name=command[0].rpartition("/")[2], command=command)
