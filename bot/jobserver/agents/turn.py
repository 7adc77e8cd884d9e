"""One turn of an agent: follows its updates, handles its requests, and determines the result.

Failed turns often end like successful ones: this module recognizes them, and says why they failed.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    Cost,
    CreateElicitationResponse,
    CreateFormSessionElicitationRequest,
    PlanEntry,
    PromptResponse,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionInfoUpdate,
    SessionNotification,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    Usage,
    UsageUpdate,
)

from bot.jobapi.models import PlanStep, StepStatus
from bot.jobserver.agents.editor import ends_with_question, last_paragraph
from bot.jobserver.agents.named import Agent
from bot.jobserver.agents.permissions import PermissionPolicy, ToolCall, ToolCalls
from bot.jobserver.agents.questions import Questions
from bot.jobserver.editors.interface import EditProgress, EditResult
from bot.jobserver.editors.job_log import JobLog, Redactor
from bot.jobserver.egress.request_rules import RELAY
from bot.jobserver.errors import EditError
from bot.jobserver.store.records import Question
from bot.jobserver.text import one_line
from bot.jobserver.usage import Money, Spent, reported_money

LOGIN_NEEDED = -32000
"""The protocol's error code for a missing login."""
_ABOUT_A_KEY = re.compile(
    r"\b(?:api|x-api|this|your)[ _-]?key\b|\bunauthori[sz]ed\b|\bauthentication (?:error|failed|required)|\b401\b",
    re.IGNORECASE,
)
"""Errors about a key, as worded by Anthropic, OpenAI, Google and OpenRouter."""
_STOPPED_EARLY = {
    "max_tokens": "its model's answer became too long; ask for less at once",
    "max_turn_requests": "it needed more steps than it allows for one request; ask for less at once",
    "refusal": "its model refused to do this",
    "cancelled": "it gave up by itself",
}
ANSWER_LIMIT = 100_000
"""Characters of an answer that are kept."""
_MOST_STEPS = 100
_MOST_SHOWN = 5
_MOST_SHOWN_CHARACTERS = 2500


@dataclass(frozen=True)
class TurnEnd:
    """How a turn ended, according to the agent.

    `has_usage`: whether it reported tokens. `was_system_error`: Codex's signal for an error.
    """

    stop_reason: str
    answer: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    has_usage: bool = True
    was_system_error: bool = False


def codex_failure(end: TurnEnd) -> str | None:
    """Returns why a turn failed although it claims success, or None.

    Codex reports errors as its answer and, on request, also as a separate object, in terms that no other agent uses.
    """
    failure = nested(end.meta, "jetbrains", "air", "sessionFailure")
    if isinstance(failure, Mapping) and failure.get("severity") != "warning":
        return one_line(str(failure.get("title") or end.answer or failure.get("category")))
    if end.was_system_error and not end.has_usage:
        return one_line(end.answer) or "a system error"
    return None


def stopped_early(end: TurnEnd) -> str | None:
    """Returns why a turn stopped early, or None if it claims to be complete."""
    if end.stop_reason == "end_turn":
        return None
    reason = _STOPPED_EARLY.get(end.stop_reason, "it stopped for a reason that Pagehand does not know")
    return f"{reason}: {one_line(end.answer)}" if end.stop_reason == "refusal" and end.answer else reason


def request_failed(name: str, code: int, message: str, data: Any, *, login: str) -> str:
    """Describes a protocol error. `login` says how to log in, such as "set A_KEY"."""
    details = one_line(_told(message, data))
    match code:
        case -32000 | 401 | 403:
            return _not_logged_in(name, details, login)
        case 429:
            return f"the provider of {name}'s model accepts no more requests at the moment ({details}); try again later"
        case _:
            return failed(name, details, login=login)


def failed(name: str, details: str, *, login: str) -> str:
    """Describes a failed turn. Some agents pass on their provider's message about a key without a code."""
    return _not_logged_in(name, details, login) if _ABOUT_A_KEY.search(details) else f"{name} failed: {details}"


def _not_logged_in(name: str, details: str, login: str) -> str:
    if RELAY in details:  # the relay's errors look like a provider's, but are never about the key
        return f"{name} failed: {details}"
    return f"{name} is not logged in, or its key is not valid ({details}); {login}"


def _told(message: str, data: Any) -> str:
    """Returns the most useful text; in many agents' errors, it is in the data, and the message is just a heading."""
    message = _inner_message(message)
    if isinstance(data, Mapping):
        more = next((data[key] for key in ("details", "message", "error") if isinstance(data.get(key), str)), "")
        return more if message in {"", "Internal error", "Error"} and more else " ".join(filter(None, [message, more]))
    return f"{message}: {data}" if isinstance(data, str) and data else message


def _inner_message(message: str) -> str:
    """Some agents' messages are their provider's complete JSON responses."""
    if not message.startswith("{"):
        return message
    try:
        inner = nested(json.loads(message), "error", "message")
    except (ValueError, RecursionError):
        return message
    return inner if isinstance(inner, str) and inner else message


def nested(value: Any, *keys: str) -> Any:
    """Returns the value under these keys of nested mappings, or None."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


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


@dataclass
class Turn:
    """Handles the messages of one session of an agent; implements `connection.TurnListener`."""

    session_id: str
    progress: TurnProgress
    permissions: PermissionPolicy
    questions: Questions
    log: JobLog

    def updated(self, notification: SessionNotification) -> None:
        # Subagents can have their own sessions, whose messages are not part of the answer.
        if notification.session_id == self.session_id:
            self.progress.handle(notification)

    def permission(self, request: RequestPermissionRequest) -> RequestPermissionResponse:
        call = self.progress.calls.merge(request.tool_call)
        response = self.permissions.decide(call, request.options)
        is_allowed = self.permissions.allows(call)
        self.log.line(f"[{'allowed' if is_allowed else 'refused'}] {call.kind}: {call.described() or call.title}")
        return response

    async def elicited(self, request: CreateFormSessionElicitationRequest) -> CreateElicitationResponse:
        response = await self.questions.ask(request)
        self.log.line(f"[asked: {response.action}]")
        return response

    async def withdraw(self) -> None:
        """Answers all open requests of an agent that is about to be ended."""
        self.permissions.is_closed = True
        await self.questions.withdraw()

    def with_last_words(self, reason: str) -> str:
        """Adds the agent's last words to the reason why a turn broke off; Claude's name the cause."""
        said = one_line(self.progress.answer)
        return f"{reason}; it said: {said}" if said and said not in reason else reason

    def ended(self, response: PromptResponse) -> TurnEnd:
        return TurnEnd(
            stop_reason=response.stop_reason,
            answer=self.progress.answer,
            meta=response.field_meta or {},
            has_usage=response.usage is not None,
            was_system_error=self.progress.was_system_error,
        )


def check(end: TurnEnd, agent: Agent, refused: Sequence[str | None], model_fault: str | None = None) -> None:
    """Raises EditError for a turn that failed, whatever the agent claims.

    `model_fault`: why its model's last answer was not a complete one, as far as the relay knows.
    """
    if failure := codex_failure(end) or model_fault:
        raise EditError(failed(agent.name, failure, login=agent.login))
    # Some agents give up after a refusal, others continue.
    if (reason := stopped_early(end)) and not (end.stop_reason == "cancelled" and refused):
        raise EditError(f"{agent.name} stopped before it was done: {reason}")


def askable(refused: Sequence[str | None]) -> list[str]:
    """Returns the refused calls to show to a person; nothing else can be allowed later."""
    shown = [what for what in refused if what is not None][:_MOST_SHOWN]
    while sum(map(len, shown)) > _MOST_SHOWN_CHARACTERS:
        shown.pop()
    return shown


def result(
    end: TurnEnd,
    refused: Sequence[str | None],
    asked: Sequence[str],
    unanswered: Question | None = None,
    *,
    was_answered: bool = False,
) -> EditResult:
    """Returns the result of a turn that did not fail.

    Its question is, in this order: a request for a person's permission; a question that nobody answered; or, if no form
    was answered (after which agents like to end with a polite question), the last paragraph of an answer that ends with
    a question mark.
    """
    if asked:
        return EditResult(summary=end.answer, question=permission_question(asked))
    if unanswered:
        return EditResult(summary=end.answer, question=unanswered.text, question_fields=unanswered.fields)
    if not was_answered and ends_with_question(end.answer):
        return EditResult(summary=end.answer, closing_question=last_paragraph(end.answer))
    return EditResult(summary=end.answer, reason=refusal_reason(refused))


def permission_question(asked: Sequence[str]) -> str:
    """Returns the question in Markdown; it shows exactly what a yes allows."""
    items = "\n".join(f"- {_code(what)}" for what in asked)
    return f"May I do this?\n\n{items}\n\nA reply that begins with “yes” allows exactly this, once."


def refusal_reason(refused: Sequence[str | None]) -> str:
    """Returns why nothing was changed, if something was refused."""
    if not refused:
        return ""
    shown = ", ".join(map(_code, askable(refused)))
    return f"It wanted to do what is not allowed here: {shown or 'something that cannot be shown'}"


def _code(text: str) -> str:
    """Formats text as Markdown code on one line, with longer fences if it contains backticks."""
    line = text.replace("\n", " ⏎ ").replace("\t", " ")
    fence = "`" * (1 + max((len(run) for run in line.replace("`", " `").split() if not run.strip("`")), default=0))
    while fence in line:
        fence += "`"
    return f"{fence} {line} {fence}" if "`" in line else f"`{line}`"
