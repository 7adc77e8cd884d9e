"""One turn of an agent: handles its updates and requests, and works out the result."""

import asyncio
from collections.abc import Sequence

from acp.schema import (
    CreateElicitationResponse,
    CreateFormSessionElicitationRequest,
    PromptResponse,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionNotification,
    ToolCallProgress,
    ToolCallStart,
)

from bot.jobserver.agents.content import asks_something, last_paragraph
from bot.jobserver.agents.failures import TurnEnd, failed, stopped_early
from bot.jobserver.agents.named import Agent
from bot.jobserver.agents.permissions import PermissionPolicy
from bot.jobserver.agents.progress import Repetition, TurnProgress
from bot.jobserver.agents.questions import Questions
from bot.jobserver.agents.text import AgentLog
from bot.jobserver.editors.interface import EditResult
from bot.jobserver.errors import EditError
from bot.jobserver.questions import Question
from bot.jobserver.text import one_line

_MOST_ASKED = 5
_MOST_ASKED_CHARACTERS = 2500


class Turn:
    """Listens to one session of an agent."""

    def __init__(
        self,
        session_id: str,
        progress: TurnProgress,
        permissions: PermissionPolicy,
        questions: Questions,
        log: AgentLog,
    ) -> None:
        self._session_id = session_id
        self._progress = progress
        self._log = log
        self.questions = questions
        self._repetition = Repetition()
        self.permissions = permissions
        self.is_enough = asyncio.Event()
        self.why_enough = ""

    def updated(self, notification: SessionNotification) -> None:
        # An agent's helpers can have sessions of their own: what they say is not the answer.
        if notification.session_id == self._session_id:
            self._progress.hear(notification)
            self._watch(notification)

    def permission(self, request: RequestPermissionRequest) -> RequestPermissionResponse:
        call = self._progress.calls.merge(request.tool_call)
        response = self.permissions.decide(call, request.options)
        is_allowed = self.permissions.allows(call)
        self._log.line(f"[{'allowed' if is_allowed else 'refused'}] {call.kind}: {call.described() or call.title}")
        if not is_allowed:
            self._end_if(self._repetition.refused(call))
        return response

    async def elicited(self, request: CreateFormSessionElicitationRequest) -> CreateElicitationResponse:
        response = await self.questions.ask(request)
        self._log.line(f"[asked: {response.action}]")
        return response

    async def withdraw(self) -> None:
        """Answers whatever the agent still waits for: it is to be ended."""
        self.permissions.is_closed = True
        await self.questions.withdraw()

    def _watch(self, notification: SessionNotification) -> None:
        match notification.update:
            case ToolCallStart() | ToolCallProgress() as update if update.status in {"completed", "failed"}:
                if call := self._progress.calls.known(update.tool_call_id):
                    self._end_if(self._repetition.ended(call))
            case _:
                pass

    def _end_if(self, reason: str | None) -> None:
        if reason and not self.is_enough.is_set():
            self.why_enough = reason
            self._log.line(f"[ended: {reason}]")
            self.is_enough.set()

    def with_last_words(self, reason: str) -> str:
        """Returns why a turn broke off, with what the agent said before: with Claude that names the cause."""
        said = one_line(self._progress.answer)
        return f"{reason}; it said: {said}" if said and said not in reason else reason

    def ended(self, response: PromptResponse) -> TurnEnd:
        return TurnEnd(
            stop_reason=response.stop_reason,
            answer=self._progress.answer,
            meta=response.field_meta or {},
            has_usage=response.usage is not None,
            was_system_error=self._progress.was_system_error,
        )


def check(end: TurnEnd, agent: Agent, refused: Sequence[str | None]) -> None:
    """Raises EditError for a turn that failed, whatever its agent claims."""
    if failure := agent.failed(end):
        raise EditError(failed(agent.name, failure, login=agent.login))
    # Some agents give up when something is refused to them, others go on.
    if (reason := stopped_early(end)) and not (end.stop_reason == "cancelled" and refused):
        raise EditError(f"{agent.name} stopped before it was done: {reason}")


def askable(refused: Sequence[str | None]) -> list[str]:
    """Returns what of the refused is shown to a person, and nothing else may later be let through."""
    shown = [what for what in refused if what is not None][:_MOST_ASKED]
    while sum(map(len, shown)) > _MOST_ASKED_CHARACTERS:
        shown.pop()
    return shown


def result(
    end: TurnEnd,
    refused: Sequence[str | None],
    asked: Sequence[str],
    unanswered: Question | None = None,
    *,
    is_changed: bool,
    asks_by_form: bool = False,
) -> EditResult:
    """Returns what is told at the end of a turn that did not fail.

    A question is what needs a person's permission, where that is asked for; or else what the agent asked in vain; or
    else, when nothing was changed, the last paragraph of an answer that ends with a question mark, unless this agent
    asks otherwise.
    """
    if asked:
        return EditResult(summary=end.answer, question=permission_question(asked))
    if unanswered:
        return EditResult(summary=end.answer, question=unanswered.words, question_fields=unanswered.fields)
    if not is_changed and not asks_by_form and asks_something(end.answer):
        return EditResult(summary=end.answer, question=last_paragraph(end.answer))
    return EditResult(summary=end.answer, reason="" if is_changed else refusal_reason(refused))


def permission_question(asked: Sequence[str]) -> str:
    """Returns the question, in Markdown; what stands in it is exactly what a yes lets through."""
    items = "\n".join(f"- {_code(what)}" for what in asked)
    return f"May I do this?\n\n{items}\n\nA reply that begins with “yes” allows exactly this, once."


def refusal_reason(refused: Sequence[str | None]) -> str:
    """Returns why nothing was changed, as far as it is because of what was not allowed."""
    if not refused:
        return ""
    shown = ", ".join(map(_code, askable(refused)))
    return f"It wanted to do what is not allowed here: {shown or 'something that cannot be shown'}"


def _code(text: str) -> str:
    """Markdown code on one line, longer fences around text that has fences itself."""
    line = text.replace("\n", " ⏎ ").replace("\t", " ")
    fence = "`" * (1 + max((len(run) for run in line.replace("`", " `").split() if not run.strip("`")), default=0))
    while fence in line:
        fence += "`"
    return f"{fence} {line} {fence}" if "`" in line else f"`{line}`"
