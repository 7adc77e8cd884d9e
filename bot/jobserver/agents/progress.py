"""What an agent tells while it works: its plan, its tool calls and, last, its answer."""

from collections.abc import Callable, Mapping, Sequence

from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    Cost,
    PlanEntry,
    SessionInfoUpdate,
    SessionNotification,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    Usage,
    UsageUpdate,
)

from bot.jobserver.agents.failures import nested
from bot.jobserver.agents.text import Redactor, one_line
from bot.jobserver.agents.tool_calls import ToolCall, ToolCalls
from bot.jobserver.editors.interface import Progress
from bot.jobserver.models import PlanStep, StepStatus
from bot.jobserver.usage import Money, Spent, told_money

ANSWER_LIMIT = 100_000
"""Characters of an answer that are kept."""
_MOST_STEPS = 100


class TurnProgress:
    """Hears the updates of one turn.

    `calls` has its tool calls. `was_system_error` is Codex's sign that the turn failed.
    """

    def __init__(
        self,
        progress: Progress,
        log: Callable[[str], None],
        redact: Redactor,
        tool_kinds: Mapping[str, str] | None = None,
    ) -> None:
        self._progress = progress
        self._log = log
        self._redact = redact
        self._answer = Answer()
        self._activity = ""
        self.calls = ToolCalls(tool_kinds)
        self.was_system_error = False
        self._money: Money | None = None

    @property
    def answer(self) -> str:
        return self._redact(self._answer.text)

    def hear(self, notification: SessionNotification) -> None:
        match notification.update:
            case AgentMessageChunk(content=TextContentBlock(text=text)):
                self._answer.add(text)
            case ToolCallStart() | ToolCallProgress() as update:
                self._hear_call(update)
            case AgentPlanUpdate(entries=entries):
                self._progress.plan(plan_steps(entries, self._redact))
            case SessionInfoUpdate(field_meta=meta):
                status = nested(meta, "codex", "threadStatus", "type")
                self.was_system_error = self.was_system_error or status == "systemError"
            case UsageUpdate(cost=Cost(amount=amount, currency=currency)):
                self._money = told_money(amount, currency) or self._money
            case _:
                # Thoughts, modes, commands and echoes of the prompt are of no use to whoever asked.
                pass

    def spent(self, usage: Usage | None) -> Spent:
        """Returns what the turn took, by what was told at its end; None where the tokens are counted by the relay."""
        if usage is None:
            return Spent(money=self._money)
        cached = (usage.cached_read_tokens or 0) + (usage.cached_write_tokens or 0)
        return Spent() + Spent(usage.input_tokens + cached, usage.output_tokens, self._money)

    def _hear_call(self, update: ToolCallStart | ToolCallProgress) -> None:
        if update.tool_call_id not in self.calls:
            self._answer.interrupt()
        call = self.calls.merge(update)
        if update.title:
            self._tell(call)
        if update.status == "failed":
            self._log(f"[failed] {call.title}")

    def _tell(self, call: ToolCall) -> None:
        title = self._redact(call.title)
        if title != self._activity:
            self._activity = title
            self._progress.activity(title)
            self._log(f"[{call.kind}] {title}")


class Answer:
    """The agent's last message: what it says after its last tool call, or before, where it says nothing after."""

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
        """What comes now is another message."""
        self._earlier = self.text
        self._pieces, self._length = [], 0

    def _current(self) -> str:
        text = "".join(self._pieces).strip()
        return f"{text}…" if self._length >= ANSWER_LIMIT else text


def plan_steps(entries: Sequence[PlanEntry], redact: Redactor) -> tuple[PlanStep, ...]:
    """Returns the plan as it is shown; steps beyond the first hundred are left out."""
    return tuple(
        PlanStep(title=redact(one_line(entry.content)), status=StepStatus(entry.status))
        for entry in entries[:_MOST_STEPS]
    )
