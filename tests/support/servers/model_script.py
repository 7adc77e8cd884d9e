"""What the scripted model is asked and what it answers: the same for all wire formats."""

import json
from collections.abc import Callable, Mapping, Sequence
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


_Arguments: TypeAlias = Callable[[str, str], Mapping[str, Any]]
_WRITERS: Mapping[str, _Arguments] = {
    "Write": lambda path, text: {"file_path": path, "content": text},
    "write_file": lambda path, text: {"file_path": path, "content": text},
    "apply_patch": lambda path, text: {"input": _patch(path, text)},
    # Codex lets its newest models call tools in JavaScript.
    "exec": lambda path, text: {"input": f"await tools.apply_patch({json.dumps(_patch(path, text))});"},
    "write": lambda path, text: {"filePath": path, "path": path, "content": text},
}
_SHELLS: Mapping[str, Callable[[str], Mapping[str, Any]]] = {
    "Bash": lambda command: {"command": command, "description": "Runs a command"},
    "bash": lambda command: {"command": command, "description": "Runs a command"},
    "run_shell_command": lambda command: {"command": command, "description": "Runs a command"},
    "exec_command": lambda command: {"cmd": command},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": command},
}


class NoSuchTool(Exception):
    """The agent announced no known tool for the purpose."""


def tool_call(step: WriteFile | RunCommand, request: ModelRequest) -> ToolCall:
    """Chooses the tool by name among those announced, and uses only arguments that it declares.

    Raises:
        NoSuchTool: none of them is announced.
    """
    known = _WRITERS if isinstance(step, WriteFile) else _SHELLS
    name = next((tool for tool in request.tools if _plain(tool) in known), None)
    if name is None:
        raise NoSuchTool(f"{type(step).__name__}: the agent announced only {sorted(request.tools)}")
    schema = request.tools[name]
    return ToolCall(name, _fitting(_arguments(step, _plain(name)), schema), takes_text=schema is None)


def _arguments(step: WriteFile | RunCommand, tool: str) -> Mapping[str, Any]:
    return _WRITERS[tool](step.path, step.text) if isinstance(step, WriteFile) else _SHELLS[tool](step.command)


def _plain(tool: str) -> str:
    return tool.rpartition("__")[2]


def _fitting(arguments: Mapping[str, Any], schema: Mapping[str, Any] | None) -> Mapping[str, Any]:
    properties = (schema or {}).get("properties")
    return {name: value for name, value in arguments.items() if name in properties} if properties else arguments


def _patch(path: str, text: str) -> str:
    lines = "".join(f"+{line}\n" for line in text.splitlines())
    return f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n"
