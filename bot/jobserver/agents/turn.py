"""One turn of an agent: follows its updates, handles its requests, and determines the result.

Failed turns often end like successful ones: this module recognizes them, and says why they failed.
"""

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from acp import schema

from bot.jobapi.models import Cost, Hide, Mode, PlanStep, StepStatus
from bot.jobserver.agents.named import Agent
from bot.jobserver.agents.permissions import READING_KINDS, SWITCHES_MODE, PermissionPolicy, ToolCall, ToolCalls
from bot.jobserver.agents.questions import Questions
from bot.jobserver.editors.interface import EditProgress, EditResult
from bot.jobserver.editors.job_log import JobLog
from bot.jobserver.egress.request_rules import RELAY
from bot.jobserver.errors import EditError
from bot.jobserver.store.records import Question
from bot.jobserver.text import one_line
from bot.jobserver.usage import Spent, reported_money
from bot.runtime.text import displayable, longer_run
from bot.runtime.untrusted_json import value_at

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
_MOST_READ = 500
"""Files that a turn read, or said so, whether they exist or not."""


@dataclass(frozen=True)
class TurnEnd:
    """How a turn ended, according to the agent. `was_system_error`: Codex's signal for an error.

    `plan`: the one with which it asked to leave its plan mode, if it did. `read`: the paths of what it read.
    """

    response: schema.PromptResponse
    answer: str
    was_system_error: bool = False
    plan: str = ""
    read: tuple[str, ...] = ()


def codex_failure(end: TurnEnd) -> str | None:
    """Returns why a turn failed although it claims success, or None.

    Codex reports errors as its answer and, on request, also as a separate object, in terms that no other agent uses.
    """
    failure = value_at(end.response.field_meta, "jetbrains", "air", "sessionFailure")
    if isinstance(failure, Mapping) and failure.get("severity") != "warning":
        return one_line(str(failure.get("title") or end.answer or failure.get("category")))
    if end.was_system_error and end.response.usage is None:
        return one_line(end.answer) or "a system error"
    return None


def stopped_early(end: TurnEnd) -> str | None:
    """Returns why a turn stopped early, or None if it claims to be complete."""
    stop_reason = end.response.stop_reason
    if stop_reason == "end_turn":
        return None
    reason = _STOPPED_EARLY.get(stop_reason, "it stopped for a reason that Pagehand does not know")
    return f"{reason}: {one_line(end.answer)}" if stop_reason == "refusal" and end.answer else reason


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
    with contextlib.suppress(ValueError, RecursionError):  # some are their provider's complete JSON responses
        message = value_at(json.loads(message), "error", "message") or message
    if isinstance(data, Mapping):
        more = next((data[key] for key in ("details", "message", "error") if isinstance(data.get(key), str)), "")
        return more if message in {"", "Internal error", "Error"} and more else " ".join(filter(None, [message, more]))
    return f"{message}: {data}" if isinstance(data, str) and data else message


class FinalMessage:
    """The agent's last message: its text after the last tool call or, if there is none, before it."""

    def __init__(self) -> None:
        self._current = self._earlier = ""

    @property
    def text(self) -> str:
        current = self._current.strip()
        return (f"{current}…" if len(self._current) >= ANSWER_LIMIT else current) or self._earlier

    def add(self, text: str) -> None:
        self._current = (self._current + text)[:ANSWER_LIMIT]

    def interrupt(self) -> None:
        """Begins another message."""
        self._earlier, self._current = self.text, ""


@dataclass
class Turn:
    """Follows the updates of one session of an agent, and answers its requests."""

    session_id: str
    progress: EditProgress
    permissions: PermissionPolicy
    questions: Questions
    log: JobLog
    redact: Hide
    _answer: FinalMessage = field(default_factory=FinalMessage, init=False)
    _activity: str = field(default="", init=False)
    _calls: ToolCalls = field(default_factory=ToolCalls, init=False)
    _was_system_error: bool = field(default=False, init=False)
    _money: Cost | None = field(default=None, init=False)
    _plan: str = field(default="", init=False)
    _read: dict[str, None] = field(default_factory=dict, init=False)

    def updated(self, notification: schema.SessionNotification) -> None:
        if notification.session_id != self.session_id:
            return  # subagents can have their own sessions, whose messages are not part of the answer
        match notification.update:
            case schema.AgentMessageChunk(content=schema.TextContentBlock(text=text)):
                self._answer.add(text)
            case schema.ToolCallStart() | schema.ToolCallProgress() as update:
                self._handle_call(update)
            case schema.AgentPlanUpdate(entries=entries):
                steps = ((self.redact(one_line(entry.content)), StepStatus(entry.status)) for entry in entries)
                plan = (PlanStep(title=title, status=status) for title, status in islice(steps, _MOST_STEPS))
                self.progress.plan(tuple(plan))
            case schema.SessionInfoUpdate(field_meta=meta):
                self._was_system_error |= value_at(meta, "codex", "threadStatus", "type") == "systemError"
            case schema.UsageUpdate(cost=schema.Cost(amount=amount, currency=currency)):
                self._money = reported_money(amount, currency) or self._money
            case _:
                # Thoughts, modes, commands and echoes of the prompt do not interest the requester.
                pass

    def _handle_call(self, update: schema.ToolCallStart | schema.ToolCallProgress) -> None:
        if update.tool_call_id not in self._calls:
            self._answer.interrupt()
        call = self._merged(update)
        if call.kind in READING_KINDS and len(self._read) < _MOST_READ:
            self._read.update(dict.fromkeys(call.paths))
        title = self.redact(call.title)
        if update.title and title != self._activity:
            self._activity = title
            self.progress.activity(title)
            self.log.line(f"[{call.kind}] {title}")
        if update.status == "failed":
            self.log.line(f"[failed] {call.title}")

    def _merged(self, update: schema.ToolCallStart | schema.ToolCallProgress | schema.ToolCallUpdate) -> ToolCall:
        """Returns the call with the update; one to leave the plan mode has the plan in its input."""
        call, plan = self._calls.merge(update), value_at(update.raw_input, "plan")
        if call.kind == SWITCHES_MODE and isinstance(plan, str):
            self._plan = plan[:ANSWER_LIMIT].strip()
        return call

    def permission(self, request: schema.RequestPermissionRequest) -> schema.RequestPermissionResponse:
        call = self._merged(request.tool_call)
        self.log.line(f"[{'allowed' if self.permissions.allows(call) else 'refused'}] {call.kind}: {call.described()}")
        return self.permissions.decide(call, request.options)

    async def elicited(self, request: schema.CreateFormSessionElicitationRequest) -> schema.CreateElicitationResponse:
        """Waits for a person's answer; nothing else here waits."""
        response = await self.questions.ask(request)
        self.log.line(f"[asked: {response.action}]")
        return response

    async def withdraw(self) -> None:
        """Answers all open requests of an agent that is about to be ended."""
        self.permissions.is_closed = True
        await self.questions.withdraw()

    def with_last_words(self, reason: str) -> str:
        """Adds the agent's last words to the reason why a turn broke off; Claude's name the cause."""
        said = one_line(self.redact(self._answer.text))
        return f"{reason}; it said: {said}" if said and said not in reason else reason

    def ended(self, response: schema.PromptResponse) -> TurnEnd:
        plan, read = self.redact(self._plan), tuple(self._read)
        return TurnEnd(response, self.redact(self._answer.text), self._was_system_error, plan, read)

    def spent(self, usage: schema.Usage | None) -> Spent:
        """Returns the turn's usage as reported at its end; `usage` is None if the relay counts the tokens."""
        if usage is None:
            return Spent(money=self._money)
        cached = (usage.cached_read_tokens or 0) + (usage.cached_write_tokens or 0)
        return Spent() + Spent(usage.input_tokens + cached, usage.output_tokens, self._money)


def check(end: TurnEnd, agent: Agent, refused: Sequence[str], model_fault: str | None = None) -> None:
    """Raises EditError for a turn that failed, whatever the agent claims.

    `model_fault`: why its model's last answer was not a complete one, as far as the relay knows.
    """
    if failure := codex_failure(end) or model_fault:
        raise EditError(failed(agent.name, failure, login=agent.login))
    # Some agents give up after a refusal, or with their plan, others continue.
    is_given_up = end.response.stop_reason == "cancelled" and bool(refused or end.plan)
    if (reason := stopped_early(end)) and not is_given_up:
        raise EditError(f"{agent.name} stopped before it was done: {reason}")


def result(
    end: TurnEnd,
    refused: Sequence[str],
    unanswered: Question | None = None,
    *,
    was_answered: bool = False,
    mode: Mode = Mode.EDIT,
) -> EditResult:
    """Returns the result of a turn that did not fail.

    Its question is one that nobody answered or, if no form was answered (after which agents like to end with a polite
    question), the last paragraph of an answer that ends with a question mark. Of a plan, or an answer that may change
    nothing, only a form is a question: people reply to its words anyway. What was refused is no reason for these.

    Raises:
        EditError: there is no plan, or no answer to a question, that anybody could read.
    """
    if unanswered:
        return EditResult(summary=end.answer, question=unanswered.text, question_fields=unanswered.fields)
    if mode is Mode.EDIT and not was_answered and ends_with_question(end.answer):
        last_paragraph = end.answer.strip().rpartition("\n\n")[2].strip()
        return EditResult(summary=end.answer, closing_question=last_paragraph)
    reason = refusal_reason(refused)
    if mode is Mode.EDIT:
        return EditResult(summary=end.answer, reason=reason)
    is_plan = mode is Mode.PLAN
    said = displayable((is_plan and end.plan) or end.answer).strip()
    if not said:
        raise EditError(f"the agent ended without {'a plan' if is_plan else 'an answer'}. {reason}".strip())
    return EditResult(summary=end.answer, proposal=said if is_plan else "")


def ends_with_question(answer: str) -> bool:
    """Whether an answer's last paragraph ends with a question mark."""
    paragraphs = answer.strip().rstrip("*_`\"')» ")
    return paragraphs.endswith(("?", "？", "؟"))  # noqa: RUF001 - Chinese and Arabic ask with these


def refusal_reason(refused: Sequence[str]) -> str:
    """Returns why nothing was changed, if something was refused."""
    shown = ", ".join(map(_code, refused[:5]))
    return f"It wanted to do what is not allowed here: {shown}" if shown else ""


def _code(line: str) -> str:
    """Formats a line as Markdown code, with longer fences if it contains backticks."""
    fence = longer_run(line, "`", at_least=1)
    return f"{fence} {line} {fence}" if "`" in line else f"`{line}`"
