"""The agents that are tried as real programs, and what makes them ask the test's model only."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bot.jobserver.agents import named
from bot.jobserver.agents.named import Agent

KEY = "planted-key-of-the-model"


@dataclass(frozen=True)
class RealAgent:
    """`variables` are what whoever runs the server would set, by the model's address; `home` is what they would put
    into AGENT_HOME.
    """

    agent: Agent
    variables: Callable[[str], Mapping[str, str]]
    model: str | None = None
    home: Callable[[str], Mapping[str, str]] = field(default=lambda _: {})

    def write_home(self, folder: Path, url: str) -> None:
        for name, text in self.home(url).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")


def _opencode_home(url: str) -> Mapping[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {"scripted": {"name": "Scripted"}},
    }
    chosen = {"model": "test/scripted", "small_model": "test/scripted", "enabled_providers": ["test"]}
    settings = {"provider": {"test": provider}, **chosen, "share": "disabled", "autoupdate": False}
    return {".config/opencode/opencode.json": json.dumps(settings)}


REAL_AGENTS = {
    "claude": RealAgent(named.CLAUDE, lambda url: {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY}),
    # The model's name is one that Codex knows: it adds a warning to its answers otherwise.
    "codex": RealAgent(
        named.CODEX, lambda url: {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY}, model="gpt-5.5"
    ),
    "gemini": RealAgent(named.GEMINI, lambda url: {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": KEY}),
    "goose": RealAgent(
        named.GOOSE,
        lambda url: {"GOOSE_PROVIDER": "openai", "OPENAI_HOST": url, "OPENAI_API_KEY": KEY},
        model="gpt-4o",
    ),
    "opencode": RealAgent(named.OPENCODE, lambda _: {}, home=_opencode_home),
}
