"""The agent, and the model that it or another program uses."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StringConstraints, ValidationInfo, field_validator

from bot.jobserver.settings.values import Names, Words
from bot.runtime.rotating_secrets import RotatingSecret, rotating_secret
from bot.runtime.settings import Settings

EXAMPLES = Path(__file__).with_name("agent_examples")
"""Settings for agents that are not known by name, by whom they are for."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _variables(value: object) -> object:
    """Reads lines of `NAME=value`; empty lines, and those that begin with #, are left out."""
    if not isinstance(value, str):
        return value
    lines = [line for line in map(str.strip, value.splitlines()) if line and not line.startswith("#")]
    found = dict(line.split("=", 1) for line in lines if "=" in line)
    if len(found) < len(lines) or not all(map(_VARIABLE.fullmatch, found)):
        raise ValueError("must be lines of NAME=value, each name once")
    return found


class AgentSettings(Settings):
    """The coding agent, and how it is run."""

    agent: Words = Field(
        (),
        description="the coding agent that edits: claude or codex, or the command of any program that supports the "
        "Agent Client Protocol, as a JSON list or as words in shell quoting",
    )
    agent_environment: Annotated[Mapping[str, str], BeforeValidator(_variables)] = Field(
        {},
        description="variables for the agent, in lines of NAME=value, where {model_url} and {model_key} are the "
        "address and key of MODEL_API, {model} is MODEL, and {random} a new password; keys of yours belong in "
        "PASS_ENVIRONMENT",
    )
    agent_home: Path | None = Field(
        None,
        description="a folder whose files are copied to each job's HOME: an agent's configuration, or a login that is "
        "a file",
    )
    effort: str | None = Field(
        None,
        description="how much the agent's model thinks, such as low or high: one of the values that the agent lists, "
        "which --check shows; by default the agent's own",
    )

    models: Names = Field((), description="models of the agent's list that a request may choose, such as opus, sonnet")
    efforts: Names = Field((), description="efforts that it may choose, such as low, high")

    @field_validator("agent")
    @classmethod
    def _is_no_example(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """Says what replaces agents that were known by name before."""
        examples = {(path.stem,): path for path in EXAMPLES.iterdir()}
        if value in examples:
            text = examples[value].read_text(encoding="utf-8")
            raise ValueError(f"is replaced by these settings, with a model and a key of yours:\n\n{text}")
        return value

    @field_validator("agent_home")
    @classmethod
    def _is_a_folder(cls, value: Path | None) -> Path | None:
        folder = value.expanduser() if value else None
        if folder and not folder.is_dir():
            raise ValueError("must name a folder")
        return folder


class ModelSettings(Settings):
    """How a program that is not a named agent reaches its model: the server adds the key."""

    model_api: Literal["anthropic", "openai", "gemini"] | None = Field(
        None,
        description="the model API that a command, or an agent that is not known by name, uses: anthropic, openai or "
        "gemini",
    )
    model_url: str | None = Field(
        None, description="the address of that API, such as a gateway's; by default the provider's own"
    )
    model_key: Annotated[RotatingSecret, rotating_secret(str, most=1)] | None = Field(
        None,
        validate_default=True,
        description="the key of that API; from a file, which is read again when it changes, it can be rotated",
    )
    model_key_header: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,60}$", to_lower=True)] | None = Field(
        None, description="the header in which that API expects its key, such as api-key; by default the API's own"
    )

    @field_validator("model_key")
    @classmethod
    def _is_there(cls, value: RotatingSecret | None, info: ValidationInfo) -> RotatingSecret | None:
        if info.data.get("model_api") is not None and value is None:
            raise ValueError("is missing")
        return value
