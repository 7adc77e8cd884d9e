"""What the scripted model is asked and what it answers: the same for all wire formats."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias


class Speaker(StrEnum):
    """The speaker of a part of the conversation; instructions that an agent adds are the user's, too."""

    USER = "user"
    MODEL = "model"
    TOOL = "tool"


@dataclass(frozen=True)
class Part:
    """One part of a conversation, with its text as sent."""

    speaker: Speaker
    text: str


@dataclass(frozen=True)
class ModelRequest:
    """A request of an agent. `tools`: what the model may call, with the JSON schema of the arguments, or None for a
    tool that takes plain text. `answer_schema`: the JSON schema that the answer has to follow. `effort`: how much the
    model should think, if given.
    """

    parts: Sequence[Part]
    tools: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    answer_schema: Mapping[str, Any] | None = None
    stream: bool = False
    key: str = ""
    effort: str = ""

    def holds(self, text: str) -> bool:
        return any(text in part.text for part in self.parts)


@dataclass(frozen=True)
class Say:
    """The turn ends with this answer."""

    text: str


@dataclass(frozen=True)
class WriteFile:
    """The model calls the agent's own tool for writing a file; the path is absolute, from the agent's view."""

    path: str
    text: str


@dataclass(frozen=True)
class RunCommand:
    """The model calls the agent's own tool for running a shell command."""

    command: str


@dataclass(frozen=True)
class Refuse:
    """The model's service answers with an error."""

    status: int
    message: str


@dataclass(frozen=True)
class Hang:
    """No answer, until the agent gives up or the server is stopped."""


@dataclass(frozen=True)
class BreakOff:
    """The answer begins, and its connection breaks."""


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool that the agent announced. `takes_text`: it gets the argument `input`
    as plain text, not as JSON.
    """

    name: str
    arguments: Mapping[str, Any]
    takes_text: bool = False


Step: TypeAlias = Say | WriteFile | RunCommand | ToolCall | Refuse | Hang | BreakOff


Reply: TypeAlias = Say | ToolCall


class Script:
    """The model's answers by prompt."""

    def __init__(self) -> None:
        self._turns: dict[str, tuple[Step, ...]] = {}

    def on(self, prompt: str, *steps: Step) -> None:
        """A prompt with this text gets these steps, one for each later result of a tool."""
        self._turns[prompt] = steps

    def next_step(self, parts: Sequence[Part]) -> Step | None:
        """Returns the next step in the newest turn, the same when asked again; None if the script has no answer."""
        for index in reversed(range(len(parts))):
            part = parts[index]
            if part.speaker is Speaker.USER and (prompt := self._newest_in(part.text)) is not None:
                steps = self._turns[prompt]
                results = sum(later.speaker is Speaker.TOOL for later in parts[index:])
                return steps[min(results, len(steps) - 1)]
        return None

    def _newest_in(self, text: str) -> str | None:
        found = [prompt for prompt in self._turns if prompt in text]
        return max(found, key=text.rfind, default=None)
