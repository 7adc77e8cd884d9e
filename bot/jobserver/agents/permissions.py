"""What an agent may do when it asks: files in the copy yes, anything else no, or what a person has allowed."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, RequestPermissionResponse

from bot.jobserver.agents.tool_calls import ToolCall

_FILE_KINDS = frozenset({"read", "search", "edit", "delete", "move"})
_READING_KINDS = frozenset({"read", "search"})
_MOST_REFUSED = 20
"""Calls of a turn that are remembered as refused."""
_AGENT_SETTINGS = frozenset({
    ".agents", ".claude", ".codex", ".gemini", ".git", ".goose", ".mcp.json", ".opencode", "opencode.json",
    "opencode.jsonc",
})  # fmt: skip
"""Files in which agents find commands to run and permissions: no agent widens its own."""


@dataclass(frozen=True)
class CopyPaths:
    """Where the copy is: `seen` is its path for the agent, `real` its path here."""

    seen: Path
    real: Path

    def relative(self, path: str) -> PurePosixPath | None:
        """Returns a path that an agent names as one in the copy; None for one outside, also by way of a link.

        One that goes up is taken for one outside: where it leads depends on the links before it.
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


def concerns_the_copy_only(call: ToolCall, relative: Callable[[str], PurePosixPath | None]) -> bool:
    """Whether a call reads or changes named files, all of them in the copy, and none that steers an agent."""
    if call.kind not in _FILE_KINDS or not call.paths:
        return False
    found = [relative(path) for path in call.paths]
    return all(path is not None and _may_touch(call.kind, path) for path in found)


def _may_touch(kind: str, path: PurePosixPath) -> bool:
    return kind in _READING_KINDS or not _AGENT_SETTINGS.intersection(path.parts)


def answer(options: Sequence[PermissionOption], *, allowed: bool) -> RequestPermissionResponse:
    """Chooses among the options by their kind, for this one time where possible; a yes never holds for later calls."""
    kinds = ("allow_once",) if allowed else ("reject_once", "reject_always")
    for kind in kinds:
        for option in options:
            if option.kind == kind:
                return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option.option_id))
    return withdrawn()


def withdrawn() -> RequestPermissionResponse:
    """The answer to whatever is asked once the turn was cancelled."""
    return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


class PermissionDesk:
    """Answers one turn's requests. `granted`: descriptions of calls that a person has allowed for this turn.

    `refused` are the descriptions of those that were refused, each once; None stands for one too long to be shown.
    """

    def __init__(self, paths: CopyPaths, granted: Collection[str] = ()) -> None:
        self._paths = paths
        self._granted = frozenset(granted)
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
        return call.described() in self._granted or concerns_the_copy_only(call, self._paths.relative)
