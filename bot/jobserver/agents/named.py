"""The agents that are known by name: what to start, what makes it safe, and how it differs from the others.

Each was run in the version that the job server's README names.
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
"""Texts by their paths in HOME."""
_GEMINI_ACCESS = "Allow access to absolute path: "
_OPENAI = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORGANIZATION", "OPENAI_PROJECT")
_ANTHROPIC = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL")
_GOOGLE = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL")


def _no_files(_model: str | None, _environment: Mapping[str, str]) -> Files:
    return {}


def _as_told(call: ToolCall) -> ToolCall:
    return call


@dataclass(frozen=True)
class Agent:
    """A program that speaks the Agent Client Protocol.

    `environment` is set for it, and each of `random_variables` to a password that nobody knows; of the server's own
    variables it gets `passed`, besides what PASS_ENVIRONMENT names.
    `mode` is the one of its list in which it asks before it acts, `mode_in_sandbox` another where it runs in one.
    `model_variable` names the variable that tells it the model at its start; it then takes any. Not those that match
    `listed_models`, where its maker serves them: its own list has to have them.
    `files` makes what its HOME begins with. `resumes`: whether to go on in its own session. `login` says in
    words how to log it in, `model_login` finds that for the relay. `client_meta` is announced to it.
    `tool_kinds`: what `ToolCalls` has to know of its tools; `completed` adds to a call what it tells in another place
    than others. `install` is a command that installs it in the version that
    was tried. `caches` are folders in HOME that it does without in its next turn, besides those of any program.
    `asks_by_form`: it has a way to ask that is not its last sentence.
    `tells_usage_of_turns`: the tokens and money that it tells are a turn's, and not, as the protocol has it, the whole
    session's.
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
    completed: Callable[[ToolCall], ToolCall] = _as_told
    install: str = ""
    caches: tuple[str, ...] = ()
    tells_usage_of_turns: bool = False
    asks_by_form: bool = False


def _codex_files(model: str | None, environment: Mapping[str, str]) -> Files:
    lines = [f"model = {json.dumps(model)}"] if model else []
    lines += ["check_for_update_on_startup = false"]
    key = next((name for name in ("CODEX_API_KEY", "OPENAI_API_KEY") if name in environment), None)
    address = environment.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
    lines += ['model_provider = "pagehand"'] if key else []
    # Searched at OpenAI, which the relay refuses.
    lines += ['web_search = "disabled"'] if address.startswith(RELAY_ADDRESS) else []
    lines += ["[analytics]", "enabled = false", "[features]", "plugins = false", "apps = false"]
    # Else it asks only while it plans.
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
    """Gemini tells a command, and the path of a file that came with the prompt, in the title alone."""
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
    tells_usage_of_turns=True,
    asks_by_form=True,
    install="npm install --global @agentclientprotocol/claude-agent-acp@0.101.0",
    caches=(".claude/backups", ".claude/debug", ".claude/shell-snapshots", ".claude/statsig", ".claude/telemetry"),
    command=("claude-agent-acp",),
    environment={
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        # It would ask its model after each turn what somebody might type next.
        "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false",
        # The default is ten, silent for three minutes.
        "CLAUDE_CODE_MAX_RETRIES": "4",
        "NO_BROWSER": "1",
    },
    passed=(*_ANTHROPIC, "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_MAX_RETRIES"),
    mode="default",
    model_variable="ANTHROPIC_MODEL",
    # By one word each; it takes a full name, too, and does not list it.
    listed_models=re.compile(r"(?!claude-).+"),
    model_login=claude_login,
    login="set ANTHROPIC_API_KEY, or CLAUDE_CODE_OAUTH_TOKEN as `claude setup-token` prints it",
)
CODEX = Agent(
    name="codex",
    asks_by_form=True,
    install="npm install --global @agentclientprotocol/codex-acp@2.6.0",
    caches=(".codex/log", ".codex/shell_snapshots", ".codex/skills/.system", ".codex/tmp"),
    command=("codex-acp",),
    # As for Claude.
    environment={"CODEX_ACP_PROMPT_SUGGESTIONS": "false", "NO_BROWSER": "1"},
    # In its mode `agent` another call of the model decides about what leaves its sandbox, and nobody is asked.
    mode="workspace-write",
    # Its own sandbox cannot start inside of ours, and without its shell it cannot even read a file.
    mode_in_sandbox="agent-full-access",
    listed_models=re.compile(r".+"),
    passed=("CODEX_API_KEY", *_OPENAI),
    files=_codex_files,
    failed=codex_failure,
    model_login=codex_login,
    login="set OPENAI_API_KEY, or put .codex/auth.json into AGENT_HOME",
    # Only Codex: with it, Claude's adapter turns its errors into turns that end well.
    client_meta={"jetbrains": {"air": {"version": 1, "capabilities": ["sessionFailure"]}}},
)
GEMINI = Agent(
    name="gemini",
    install="npm install --global @google/gemini-cli@0.61.0",
    caches=(".gemini/history", ".gemini/tmp"),
    command=("gemini", "--acp"),
    environment={"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "true", "NO_BROWSER": "1"},
    passed=_GOOGLE,
    model_variable="GEMINI_MODEL",
    files=_gemini_files,
    # Loading a session within the clock minute of its last start empties it, and what it then tells of earlier turns
    # comes in the midst of the next one.
    resumes=False,
    completed=_gemini_call,
    model_login=gemini_login,
    login="set GEMINI_API_KEY",
)
OPENCODE = Agent(
    name="opencode",
    install="npm install --global opencode-ai@1.18.33",
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
    # It opens an HTTP API on this machine, which shows the key to whoever asks.
    random_variables=("OPENCODE_SERVER_PASSWORD",),
    passed=(*_ANTHROPIC, *_OPENAI, "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "OPENROUTER_API_KEY"),
    # Without one it takes a free model on somebody else's servers.
    needs_model=True,
    files=_opencode_files,
    model_login=opencode_login,
    login="set the key of the provider that MODEL begins with, such as ANTHROPIC_API_KEY",
)  # fmt: skip
GOOSE = Agent(
    name="goose",
    install="npm install --global @aaif/goose@0.20.1",
    caches=(".local/state/goose/logs",),
    command=("goose", "acp"),
    environment={"GOOSE_DISABLE_KEYRING": "1", "GOOSE_MODE": "approve", "GOOSE_TELEMETRY_ENABLED": "false"},
    passed=(
        "GOOSE_PROVIDER", "GOOSE_MODEL", "OPENAI_HOST", "ANTHROPIC_HOST", *_OPENAI, *_ANTHROPIC, "GOOGLE_API_KEY",
        "OPENROUTER_API_KEY",
    ),
    model_variable="GOOSE_MODEL",
    failed=goose_failure,
    tool_kinds={
        "developer/write": "edit", "developer/edit": "edit", "developer/tree": "read", "developer/shell": "execute",
    },
    model_login=goose_login,
    login="set GOOSE_PROVIDER, such as openai, and its key, such as OPENAI_API_KEY",
)  # fmt: skip
NAMED = {agent.name: agent for agent in (CLAUDE, CODEX, GEMINI, OPENCODE, GOOSE)}


def agent_for(command: tuple[str, ...]) -> Agent:
    """Returns a named agent, or any program that is given by its command."""
    if len(command) == 1 and command[0] in NAMED:
        return NAMED[command[0]]
    return Agent(name=command[0].rpartition("/")[2], command=command)
