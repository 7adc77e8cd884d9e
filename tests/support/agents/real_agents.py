"""The agents that are tested as real programs, and the settings that make them call only the test's model."""

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from dotenv import dotenv_values

from bot.jobserver.agents import named
from bot.jobserver.agents.named import Agent
from bot.jobserver.settings import PREFIX
from bot.jobserver.settings.agent import EXAMPLES

KEY = "planted-key-of-the-model"


@dataclass(frozen=True)
class RealAgent:
    """`variables` are what an operator would set, given the model's address; `model` and `effort` are
    the settings of that name. An example also has `more` settings.
    """

    agent: Agent
    variables: Callable[[str], Mapping[str, str]] = lambda _: {}
    model: str | None = None
    effort: str | None = None
    more: Mapping[str, str] = field(default_factory=dict)

    def settings(self, url: str) -> dict[str, Any]:
        """Returns the settings for a model at this address."""
        if not self.more:
            return {"agent": (self.agent.name,), "model": self.model, "effort": self.effort}
        version = "/v1" if self.more["model_api"] == "openai" else ""
        return {**self.more, "model_key": KEY, "model_url": f"{url}{version}"}


def _example(name: str) -> RealAgent:
    """Returns a documented example: the settings of its file, and the package that its first line installs."""
    path = EXAMPLES / f"{name}.env"
    found = {key.removeprefix(PREFIX).lower(): value or "" for key, value in dotenv_values(path).items()}
    del found["model_key_file"]  # its tests give the key itself
    install = re.match(r"# [\w ]+: (npm install .+)", path.read_text(encoding="utf-8"))
    assert install is not None
    agent = Agent(name, tuple(found["agent"].split()), install=install[1])
    return RealAgent(agent, model=found["model"], more=found)


EXAMPLE_AGENTS = {path.stem: _example(path.stem) for path in sorted(EXAMPLES.glob("*.env"))}
"""Those that the README documents as settings."""
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
}
_DEFAULT = "codex"
"""Takes half of Claude's CPU time for the same turns."""


def tried(*names: str, default: Collection[str] = (_DEFAULT,)) -> pytest.MarkDecorator:
    """Runs a test for each of these agents, by `name`, or for all. The default lane runs those in `default`."""

    def marks(name: str) -> list[pytest.MarkDecorator]:
        return [] if name in default else [pytest.mark.full]

    return pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in names or REAL_AGENTS])


MARK = "PAGEHAND_TEST_RUN"


def marked_processes(mark: str) -> list[str]:
    """Returns the command lines of those that are still running."""
    return [line for entry in Path("/proc").iterdir() if entry.name.isdigit() for line in _line_of(entry, mark)]


def _line_of(process: Path, mark: str) -> Iterator[str]:
    try:
        # A zombie has no environment.
        variables = (process / "environ").read_bytes().split(b"\0")
        if os.fsencode(f"{MARK}={mark}") in variables:
            yield (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return
