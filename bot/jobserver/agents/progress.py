"""Follows an agent's updates while it works: its plan, tool calls and answer."""

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    Cost,
    FileEditToolCallContent,
    PlanEntry,
    SessionInfoUpdate,
    SessionNotification,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    Usage,
    UsageUpdate,
)

from bot.jobapi.models import PlanStep, StepStatus
from bot.jobserver.agents.failures import nested
from bot.jobserver.editors.interface import EditProgress
from bot.jobserver.editors.job_log import Redactor
from bot.jobserver.text import one_line
from bot.jobserver.usage import Money, Spent, reported_money
from bot.runtime.text import without_misleading

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
ANSWER_LIMIT = 100_000
"""Characters of an answer that are kept."""
_MOST_STEPS = 100


@dataclass(frozen=True)
class ToolCall:
    """A tool call, merged from all updates about it.

    `kind` is one of the protocol's; `paths` are the files it touches, according to the agent. `input` is the tool's
    input as text, or None if it is too long to show; `command` is the shell command in it. `title` is one line;
    `has_whole_title`: it has not been shortened.
    """

    title: str = ""
    kind: str = _UNKNOWN
    paths: tuple[str, ...] = ()
    input: str | None = ""
    has_whole_title: bool = True
    command: str = ""

    def described(self) -> str | None:
        """Describes exactly what the call does; None if that cannot be shown in a way that a person could judge."""
        details = ", ".join(self.paths) if self.input == "" else self.input
        if details is None or len(details) > _LONGEST_INPUT or not (details or self.has_whole_title):
            return None
        text = f"{self.title}: {details}" if details and details not in self.title else self.title
        return text if _is_visible(text) else None


class ToolCalls:
    """The tool calls of a turn, by id; an update may come without its call."""

    def __init__(self) -> None:
        self._calls: OrderedDict[str, ToolCall] = OrderedDict()

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._calls

    def merge(self, update: ToolCallStart | ToolCallProgress | ToolCallUpdate) -> ToolCall:
        """Merges an update into its call, and returns the call."""
        call = merged(self._calls.pop(update.tool_call_id, ToolCall()), update)
        self._calls[update.tool_call_id] = call
        if len(self._calls) > _MOST_CALLS:
            self._calls.popitem(last=False)
        return call


def merged(call: ToolCall, update: ToolCallStart | ToolCallProgress | ToolCallUpdate) -> ToolCall:
    """Returns the call with the update merged into it."""
    paths = tuple(_bounded({*call.paths, *_paths(update)}))
    title = one_line(update.title) if update.title else call.title
    return replace(
        call,
        title=title,
        has_whole_title=title == update.title if update.title else call.has_whole_title,
        kind=call.kind if update.kind in {None, _UNKNOWN} else update.kind,
        paths=paths,
        input=_as_text(update.raw_input) if update.raw_input else call.input,
        command=_command(update.raw_input) if update.raw_input else call.command,
    )


def _paths(update: ToolCallStart | ToolCallProgress | ToolCallUpdate) -> Iterator[str]:
    yield from (location.path for location in update.locations or ())
    yield from (part.path for part in update.content or () if isinstance(part, FileEditToolCallContent))
    if isinstance(update.raw_input, Mapping):
        for key in _PATH_KEYS & update.raw_input.keys():
            yield from _texts(update.raw_input[key])


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        yield from (item for item in value if isinstance(item, str))


def _bounded(paths: Iterable[str]) -> list[str]:
    """Returns the paths; if they are too many or too long, one that no policy allows."""
    found = sorted(paths)
    is_bounded = len(found) <= _MOST_PATHS and sum(map(len, found)) <= _MOST_PATH_CHARACTERS
    return found if is_bounded else [_FORBIDDEN_PATH]


def _is_visible(text: str) -> bool:
    """Whether every character of a text is visible; line breaks and tabs are, too."""
    return without_misleading(text) == text and all(c.isprintable() or c in "\n\t" for c in text)


def _command(raw: Any) -> str:
    """Returns the command in an input; empty if there is none, or if it is too long."""
    command = raw.get("command") if isinstance(raw, Mapping) else None
    return command if isinstance(command, str) and len(command) <= _LONGEST_COMMAND else ""


def _as_text(raw: Any) -> str | None:
    if isinstance(raw, Mapping):
        raw = {key: value for key, value in raw.items() if key not in _IGNORED_INPUT}
        raw = raw["command"] if raw.keys() == {"command"} else raw
    text = raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_INPUT else None


class TurnProgress:
    """Handles the updates of one turn.

    `calls` has its tool calls. `was_system_error`: Codex's signal that the turn failed.
    """

    def __init__(self, progress: EditProgress, log: Callable[[str], None], redact: Redactor) -> None:
        self._progress = progress
        self._log = log
        self._redact = redact
        self._answer = FinalMessage()
        self._activity = ""
        self.calls = ToolCalls()
        self.was_system_error = False
        self._money: Money | None = None

    @property
    def answer(self) -> str:
        return self._redact(self._answer.text)

    def handle(self, notification: SessionNotification) -> None:
        match notification.update:
            case AgentMessageChunk(content=TextContentBlock(text=text)):
                self._answer.add(text)
            case ToolCallStart() | ToolCallProgress() as update:
                self._handle_call(update)
            case AgentPlanUpdate(entries=entries):
                self._progress.plan(plan_steps(entries, self._redact))
            case SessionInfoUpdate(field_meta=meta):
                status = nested(meta, "codex", "threadStatus", "type")
                self.was_system_error = self.was_system_error or status == "systemError"
            case UsageUpdate(cost=Cost(amount=amount, currency=currency)):
                self._money = reported_money(amount, currency) or self._money
            case _:
                # Thoughts, modes, commands and echoes of the prompt do not interest the requester.
                pass

    def spent(self, usage: Usage | None) -> Spent:
        """Returns the turn's usage as reported at its end; `usage` is None if the relay counts the tokens."""
        if usage is None:
            return Spent(money=self._money)
        cached = (usage.cached_read_tokens or 0) + (usage.cached_write_tokens or 0)
        return Spent() + Spent(usage.input_tokens + cached, usage.output_tokens, self._money)

    def _handle_call(self, update: ToolCallStart | ToolCallProgress) -> None:
        if update.tool_call_id not in self.calls:
            self._answer.interrupt()
        call = self.calls.merge(update)
        if update.title:
            self._report(call)
        if update.status == "failed":
            self._log(f"[failed] {call.title}")

    def _report(self, call: ToolCall) -> None:
        title = self._redact(call.title)
        if title != self._activity:
            self._activity = title
            self._progress.activity(title)
            self._log(f"[{call.kind}] {title}")


class FinalMessage:
    """The agent's last message: its text after the last tool call or, if there is none, before it."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._earlier = ""

    @property
    def text(self) -> str:
        return self._current() or self._earlier

    def add(self, text: str) -> None:
        kept = text[: ANSWER_LIMIT - self._length]
        self._length += len(kept)
        if kept:
            self._pieces.append(kept)

    def interrupt(self) -> None:
        """Begins another message."""
        self._earlier = self.text
        self._pieces, self._length = [], 0

    def _current(self) -> str:
        text = "".join(self._pieces).strip()
        return f"{text}…" if self._length >= ANSWER_LIMIT else text


def plan_steps(entries: Sequence[PlanEntry], redact: Redactor) -> tuple[PlanStep, ...]:
    """Returns the plan for display; steps beyond the first hundred are left out."""
    return tuple(
        PlanStep(title=redact(one_line(entry.content)), status=StepStatus(entry.status))
        for entry in entries[:_MOST_STEPS]
    )
