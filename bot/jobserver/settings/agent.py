"""Settings: which agent it is, and how it is run."""

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from bot.jobserver.settings.values import Words
from bot.runtime.settings import Settings


class AgentSettings(Settings):
    """Which agent it is, and how it is run."""

    agent: Words = Field(
        (),
        description="the coding agent that edits: claude, codex, gemini, opencode or goose, or the command of any "
        "program that speaks the Agent Client Protocol, as a JSON list or as words in shell quoting",
    )
    agent_home: Path | None = Field(
        None,
        description="a folder whose files each job's HOME begins with: an agent's configuration, or its login where "
        "that is a file",
    )
    effort: str | None = Field(
        None,
        description="how much the agent's model thinks, such as low or high: one of those that the agent lists, which "
        "--check tells; by default the agent's own",
    )
    permissions: Literal["no", "ask"] = Field(
        "no",
        description="what an agent is told when it asks for more than to read and change files of the copy: "
        "no, or no until whoever asked has answered yes",
    )

    @field_validator("agent_home")
    @classmethod
    def _is_a_folder(cls, value: Path | None) -> Path | None:
        folder = value.expanduser() if value else None
        if folder and not folder.is_dir():
            raise ValueError("must name a folder")
        return folder
