"""How the scripted model acts with the tools that an agent announced."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from support.servers.model_script import ModelRequest, RunCommand, ToolCall, WriteFile

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
