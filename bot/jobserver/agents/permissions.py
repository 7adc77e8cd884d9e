"""Decides on an agent's requests for permission.

An agent may work on files in the copy, read attachments and copy them there, and do what a person has allowed.
"""

import re
import shlex
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, RequestPermissionResponse

from bot.jobserver.agents.progress import ToolCall

_FILE_KINDS = frozenset({"read", "search", "edit", "delete", "move"})
_READING_KINDS = frozenset({"read", "search"})
_MOST_REFUSED = 20
"""Refused calls of a turn that are remembered."""
_AGENT_SETTINGS = frozenset({
    ".agents", ".claude", ".codex", ".gemini", ".git", ".goose", ".mcp.json", ".opencode", "opencode.json",
    "opencode.jsonc",
})  # fmt: skip
"""Files with commands and permissions of agents: no agent may extend its own."""
_PLAIN_COMMAND = re.compile(r"[A-Za-z0-9_./@+,: \"'-]{1,2000}")
"""Commands that a shell reads as plain words, some of them quoted."""
_COPY_OPTIONS = frozenset({"-f", "-n", "-p", "-v", "--"})
_MOST_COMMANDS = 5

Relative = Callable[[str], PurePosixPath | None]
"""Returns a path relative to the copy, or None: `CopyPaths.relative`."""


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
            is_inside = (self.real / relative).resolve().is_relative_to(self.real.resolve())
        except (OSError, RuntimeError):
            return None
        return relative if is_inside else None


def only_touches_copy(call: ToolCall, relative: Relative) -> bool:
    """Whether a call only reads or changes named files in the copy, and changes none that configures agents."""
    if call.kind not in _FILE_KINDS or not call.paths:
        return False
    found = [relative(path) for path in call.paths]
    return all(path is not None and _may_touch(call.kind, path) for path in found)


def _may_touch(kind: str, path: PurePosixPath) -> bool:
    return kind in _READING_KINDS or not _AGENT_SETTINGS.intersection(path.parts)


def only_takes_attachments(call: ToolCall, folder: Path, relative: Relative) -> bool:
    """Whether a call only reads files in the copy or the attachments folder, or copies attachments to the copy.

    Agents have no tool to copy a picture: they run `cp`, which is allowed if the command does nothing else.
    """
    if call.kind in _READING_KINDS:
        return bool(call.paths) and all(relative(path) is not None or _is_below(folder, path) for path in call.paths)
    commands = call.command.split("&&")
    is_plain = call.kind == "execute" and len(commands) <= _MOST_COMMANDS
    return is_plain and all(_takes_attachments(command, folder, relative) for command in commands)


def _takes_attachments(command: str, folder: Path, relative: Relative) -> bool:
    if not _PLAIN_COMMAND.fullmatch(command):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    match words:
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


def _is_below(folder: Path, path: str) -> bool:
    plain = PurePosixPath(path)
    return plain.is_absolute() and ".." not in plain.parts and plain.is_relative_to(folder)


def answer(options: Sequence[PermissionOption], *, allowed: bool) -> RequestPermissionResponse:
    """Chooses an option by kind, for this one call if possible; permission never extends to later calls."""
    kinds = ("allow_once",) if allowed else ("reject_once", "reject_always")
    for kind in kinds:
        for option in options:
            if option.kind == kind:
                return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option.option_id))
    return withdrawn()


def withdrawn() -> RequestPermissionResponse:
    """Returns the answer to requests after the turn was cancelled."""
    return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


class PermissionPolicy:
    """Answers one turn's requests. `granted`: descriptions of calls that a person has allowed for this turn;
    `attachments`: the folder of attached files, as the agent sees it.

    `refused`: the distinct descriptions of refused calls; None for one that cannot be shown.
    """

    def __init__(self, paths: CopyPaths, granted: Collection[str] = (), attachments: Path | None = None) -> None:
        self._paths = paths
        self._granted = frozenset(granted)
        self._attachments = attachments
        self._refused: dict[str | None, None] = {}
        self.is_closed = False

    @property
    def refused(self) -> tuple[str | None, ...]:
        return tuple(self._refused)

    def decide(self, call: ToolCall, options: Sequence[PermissionOption]) -> RequestPermissionResponse:
        if self.is_closed:
            return withdrawn()
        is_allowed = self.allows(call)
        if not is_allowed and len(self._refused) < _MOST_REFUSED:
            self._refused[call.described()] = None
        return answer(options, allowed=is_allowed)

    def allows(self, call: ToolCall) -> bool:
        relative = self._paths.relative
        if call.described() in self._granted or only_touches_copy(call, relative):
            return True
        return self._attachments is not None and only_takes_attachments(call, self._attachments, relative)


class PendingPermissions:
    """The permissions last asked for, by the job's HOME, until the job's next instruction answers."""

    _MOST = 1000

    def __init__(self) -> None:
        self._asked: OrderedDict[Path, tuple[str, ...]] = OrderedDict()

    def keep(self, home: Path, asked: Sequence[str]) -> None:
        if asked:
            self._asked[home] = tuple(asked)
        if len(self._asked) > self._MOST:
            self._asked.popitem(last=False)

    def granted(self, home: Path, reply: str) -> tuple[str, ...]:
        """Returns the calls that a reply allows; whatever it says, nothing is pending afterwards."""
        asked = self._asked.pop(home, ())
        return asked if says_yes(reply) else ()


def says_yes(reply: str) -> bool:
    """Whether a reply begins with the word yes."""
    words = reply.strip().casefold()
    return words.startswith("yes") and not words[3:4].isalnum()
