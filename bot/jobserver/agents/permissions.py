"""An agent's tool calls, and the decisions on its requests for permission.

An agent may work on files in the copy, read attachments, and copy them there; in a plan or an answer it may only read.
"""

import contextlib
import json
import re
import shlex
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from acp import schema

from bot.jobapi.models import Mode
from bot.jobserver.text import one_line

_MOST_CALLS = 500
"""Tool calls of a turn; the oldest are forgotten."""
_MOST_PATHS = 100
_MOST_PATH_CHARACTERS = 20_000
_LONGEST_INPUT = 1000
_LONGEST_COMMAND = 2000
_UNKNOWN = "other"
_FORBIDDEN_PATH = "/…"
_IGNORED_INPUT = frozenset({"description", "timeout"})
_PATH_KEYS = frozenset({
    "file_path", "filePath", "filepath", "path", "paths", "abs_path", "absolute_path", "notebook_path", "dir_path",
    "directory", "new_path", "old_path", "source", "destination", "target_file", "files", "parentDir", "parent_dir",
})  # fmt: skip
"""Input names by which agents pass a tool's files when the protocol's own field is empty."""
_FILE_KINDS = frozenset({"read", "search", "edit", "delete", "move"})
READING_KINDS = frozenset({"read", "search"})
SWITCHES_MODE = "switch_mode"
"""The kind by which an agent asks to leave its plan mode, with its plan."""
_MOST_REFUSED = 20
"""Refused calls of a turn that are remembered."""
_AGENT_SETTINGS = frozenset({
    ".agents", ".claude", ".codex", ".gemini", ".git", ".goose", ".mcp.json", ".opencode", "opencode.json",
    "opencode.jsonc",
})  # fmt: skip
"""Files with commands and permissions of agents: no agent may extend its own."""
_PLAIN_COMMAND = re.compile(r"[A-Za-z0-9_./@+,: \"'-]{1,2000}")
"""Commands that a shell reads as plain words, some of them quoted."""
_READERS = frozenset({"cat", "grep", "head", "ls", "rg", "tail", "wc"})
_OPTION = re.compile(r"-[A-Za-z0-9]{1,8}")
_COPY_OPTIONS = frozenset({"-f", "-n", "-p", "-v", "--"})
_MOST_COMMANDS = 5

Relative = Callable[[str], PurePosixPath | None]
"""Returns a path relative to the copy, or None: `CopyPaths.relative`."""


@dataclass(frozen=True)
class ToolCall:
    """A tool call, merged from all updates about it.

    `kind` is one of the protocol's; `paths` are the files it touches, according to the agent. `input` is the tool's
    input as text, or empty if it is too long to show; `command` is the shell command in it. `title` is one line.
    """

    title: str = ""
    kind: str = _UNKNOWN
    paths: tuple[str, ...] = ()
    input: str = ""
    command: str = ""

    def described(self) -> str:
        """Says in one line what the call does."""
        details = self.input or ", ".join(self.paths)
        text = f"{self.title}: {details}" if details and details not in self.title else self.title
        return one_line(text, 2 * _LONGEST_INPUT)


class ToolCalls:
    """The tool calls of a turn, by id; an update may come without its call."""

    def __init__(self) -> None:
        self._calls: OrderedDict[str, ToolCall] = OrderedDict()

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._calls

    def merge(self, update: schema.ToolCallStart | schema.ToolCallProgress | schema.ToolCallUpdate) -> ToolCall:
        """Merges an update into its call, and returns the call."""
        call = merged(self._calls.pop(update.tool_call_id, ToolCall()), update)
        self._calls[update.tool_call_id] = call
        if len(self._calls) > _MOST_CALLS:
            self._calls.popitem(last=False)
        return call


def merged(call: ToolCall, update: schema.ToolCallStart | schema.ToolCallProgress | schema.ToolCallUpdate) -> ToolCall:
    """Returns the call with the update merged into it."""
    paths = tuple(_bounded({*call.paths, *_paths(update)}))
    return replace(
        call,
        title=one_line(update.title) if update.title else call.title,
        kind=call.kind if update.kind in {None, _UNKNOWN} else update.kind,
        paths=paths,
        input=_as_text(update.raw_input) if update.raw_input else call.input,
        command=_command(update.raw_input) if update.raw_input else call.command,
    )


def _paths(update: schema.ToolCallStart | schema.ToolCallProgress | schema.ToolCallUpdate) -> Iterator[str]:
    yield from (location.path for location in update.locations or ())
    yield from (part.path for part in update.content or () if isinstance(part, schema.FileEditToolCallContent))
    raw = update.raw_input if isinstance(update.raw_input, Mapping) else {}
    for key in _PATH_KEYS & raw.keys():
        values = raw[key] if isinstance(raw[key], list) else [raw[key]]
        yield from (value for value in values if isinstance(value, str))


def _bounded(paths: Iterable[str]) -> list[str]:
    """Returns the paths; if they are too many or too long, one that no policy allows."""
    found = sorted(paths)
    is_bounded = len(found) <= _MOST_PATHS and sum(map(len, found)) <= _MOST_PATH_CHARACTERS
    return found if is_bounded else [_FORBIDDEN_PATH]


def _command(raw: Any) -> str:
    """Returns the command in an input; empty if there is none, or if it is too long."""
    command = raw.get("command") if isinstance(raw, Mapping) else None
    return command if isinstance(command, str) and len(command) <= _LONGEST_COMMAND else ""


def _as_text(raw: Any) -> str:
    if isinstance(raw, Mapping):
        raw = {key: value for key, value in raw.items() if key not in _IGNORED_INPUT}
        raw = raw["command"] if raw.keys() == {"command"} else raw
    text = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_INPUT else ""


@dataclass(frozen=True)
class CopyPaths:
    """The copy: `seen` is its path as the agent sees it, `real` its path here."""

    seen: Path
    real: Path

    def relative(self, path: str) -> PurePosixPath | None:
        """Returns an agent's path relative to the copy; None if it is outside, also through a link.

        A path with `..` counts as outside: where it leads depends on the links before it.
        """
        joined = PurePosixPath(self.seen, path)
        is_plain = path and "\0" not in path and "://" not in path and not path.startswith("~")
        if not is_plain or ".." in joined.parts or not joined.is_relative_to(self.seen):
            return None
        relative = joined.relative_to(self.seen)
        try:
            path.encode()  # what is no UTF-8 cannot be told
            is_inside = (self.real / relative).resolve().is_relative_to(self.real.resolve())
        except (OSError, RuntimeError, UnicodeError):
            return None
        return relative if is_inside else None

    def file(self, path: str) -> PurePosixPath | None:
        """Does the same for a file that is there."""
        relative = self.relative(path)
        with contextlib.suppress(OSError):  # its name may be too long
            return relative if relative and (self.real / relative).is_file() else None
        return None


def only_touches_copy(call: ToolCall, relative: Relative) -> bool:
    """Whether a call only reads or changes named files in the copy, and changes none that configures agents."""
    if call.kind not in _FILE_KINDS or not call.paths:
        return False
    found = [relative(path) for path in call.paths]
    return all(path is not None and _may_touch(call.kind, path) for path in found)


def _may_touch(kind: str, path: PurePosixPath) -> bool:
    return kind in READING_KINDS or not _AGENT_SETTINGS.intersection(path.parts)


def only_reads(call: ToolCall, folder: Path | None, relative: Relative) -> bool:
    """Whether a call only reads named files in the copy, or in the attachments folder."""
    is_reading = call.kind in READING_KINDS and bool(call.paths)
    return is_reading and all(relative(path) is not None or _is_below(folder, path) for path in call.paths)


def only_runs_readers(call: ToolCall, folder: Path | None, relative: Relative) -> bool:
    """Whether a call only runs a program that shows files, on those of the copy or the attachments folder."""

    def is_harmless(word: str) -> bool:
        """A longer option can name a program to run, or a file elsewhere."""
        if word.startswith("-"):
            return _OPTION.fullmatch(word) is not None
        return relative(word) is not None or _is_below(folder, word)

    words = _plain_words(call.command) if call.kind == "execute" else []
    return bool(words) and words[0] in _READERS and all(map(is_harmless, words[1:]))


def only_takes_attachments(call: ToolCall, folder: Path, relative: Relative) -> bool:
    """Whether a call only copies attachments to the copy.

    Agents have no tool to copy a picture: they run `cp`, which is allowed if the command does nothing else.
    """
    commands = call.command.split("&&")
    is_plain = call.kind == "execute" and len(commands) <= _MOST_COMMANDS
    return is_plain and all(_takes_attachments(command, folder, relative) for command in commands)


def _plain_words(command: str) -> list[str]:
    """Returns the words of a command; none if a shell would read more in it than words."""
    with contextlib.suppress(ValueError):
        return shlex.split(command) if _PLAIN_COMMAND.fullmatch(command) else []
    return []


def _takes_attachments(command: str, folder: Path, relative: Relative) -> bool:
    match _plain_words(command):
        case ["cd", place]:
            return relative(place) == PurePosixPath()
        case ["mkdir", "-p", *places]:
            return bool(places) and all(_may_write(relative(place)) for place in places)
        case ["cp", *rest]:
            *files, place = [word for word in rest if word not in _COPY_OPTIONS] or [""]
            return bool(files) and all(_may_copy(file, place, folder, relative) for file in files)
        case _:
            return False


def _may_copy(file: str, place: str, folder: Path, relative: Relative) -> bool:
    """Whether a file may be copied; if the target is a folder, the file keeps its name in it."""
    target = relative(place)
    inside = target and relative(str(target / PurePosixPath(file).name))
    return _is_below(folder, file) and _may_write(target) and _may_write(inside)


def _may_write(path: PurePosixPath | None) -> bool:
    return path is not None and _may_touch("edit", path)


def _is_below(folder: Path | None, path: str) -> bool:
    plain = PurePosixPath(path)
    return folder is not None and plain.is_absolute() and ".." not in plain.parts and plain.is_relative_to(folder)


def answer(options: Sequence[schema.PermissionOption], *, allowed: bool) -> schema.RequestPermissionResponse:
    """Chooses an option by kind, for this one call if possible; permission never extends to later calls."""
    kinds = ("allow_once",) if allowed else ("reject_once", "reject_always")
    chosen = next((option.option_id for kind in kinds for option in options if option.kind == kind), None)
    if chosen is None:
        return withdrawn()
    return schema.RequestPermissionResponse(outcome=schema.AllowedOutcome(outcome="selected", option_id=chosen))


def withdrawn() -> schema.RequestPermissionResponse:
    """Returns the answer to requests after the turn was cancelled."""
    return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))


class PermissionPolicy:
    """Answers one turn's requests. `attachments`: the folder of attached files, as the agent sees it.

    `refused`: the distinct descriptions of refused calls; to leave the plan mode is what a plan ends with.
    """

    def __init__(self, paths: CopyPaths, attachments: Path | None = None, mode: Mode = Mode.EDIT) -> None:
        self._paths = paths
        self._attachments = attachments
        self._mode = mode
        self.refused: list[str] = []
        self.is_closed = False

    def decide(self, call: ToolCall, options: Sequence[schema.PermissionOption]) -> schema.RequestPermissionResponse:
        if self.is_closed:
            return withdrawn()
        is_allowed = self.allows(call)
        is_plan = self._mode is Mode.PLAN and call.kind == SWITCHES_MODE
        is_new = len(self.refused) < _MOST_REFUSED and call.described() not in self.refused
        if is_new and not (is_allowed or is_plan):
            self.refused.append(call.described())
        return answer(options, allowed=is_allowed)

    def allows(self, call: ToolCall) -> bool:
        relative = self._paths.relative
        if only_reads(call, self._attachments, relative):
            return True
        if self._mode is not Mode.EDIT:
            return only_runs_readers(call, self._attachments, relative)
        takes = self._attachments is not None and only_takes_attachments(call, self._attachments, relative)
        return takes or only_touches_copy(call, relative)
