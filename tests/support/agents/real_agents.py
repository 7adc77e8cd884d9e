"""The agents that are tested as real programs, and the settings that make them call only the test's model."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import pytest

from bot.jobserver.agents import named
from bot.jobserver.agents.named import Agent

KEY = "planted-key-of-the-model"


@dataclass(frozen=True)
class RealAgent:
    """`variables` are what an operator would set, given the model's address; `model` and `effort` are
    the settings of that name.
    """

    agent: Agent
    variables: Callable[[str], Mapping[str, str]]
    model: str | None = None
    effort: str | None = None


REAL_AGENTS = {
    "claude": RealAgent(
        named.CLAUDE, lambda url: {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY}, model="opus", effort="max"
    ),
    # Codex knows this model; with an unknown one it adds a warning to its answers.
    "codex": RealAgent(
        named.CODEX,
        lambda url: {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY},
        model="gpt-5.5",
        effort="high",
    ),
    "gemini": RealAgent(named.GEMINI, lambda url: {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": KEY}),
    "goose": RealAgent(
        named.GOOSE,
        lambda url: {"GOOSE_PROVIDER": "openai", "OPENAI_HOST": url, "OPENAI_API_KEY": KEY},
        model="gpt-4o",
    ),
    # Codex knows this model without asking for the list.
    "opencode": RealAgent(
        named.OPENCODE,
        lambda url: {"ANTHROPIC_BASE_URL": f"{url}/v1", "ANTHROPIC_API_KEY": KEY},
        model="anthropic/claude-sonnet-4-5",
    ),
}
_DEFAULT = "codex"
"""Takes half of Claude's CPU time for the same turns."""
_SLOW = pytest.mark.timeout(300)
"""opencode takes seven seconds of CPU for each start."""


def tried(*names: str, default: Collection[str] = (_DEFAULT,)) -> pytest.MarkDecorator:
    """Runs a test for each of these agents, by `name`, or for all. The default lane runs those in `default`."""

    def marks(name: str) -> list[pytest.MarkDecorator]:
        return [*([] if name in default else [pytest.mark.full]), *([_SLOW] if name == "opencode" else [])]

    return pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in names or REAL_AGENTS])
