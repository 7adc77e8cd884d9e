"""One turn of an agent: handles its updates and requests, and determines the result."""

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

from bot.jobserver.agents.content import ends_with_question, last_paragraph
from bot.jobserver.agents.failures import TurnEnd, codex_failure, failed, stopped_early
from bot.jobserver.agents.log import AgentLog
from bot.jobserver.agents.named import Agent
from bot.jobserver.agents.permissions import PermissionPolicy
from bot.jobserver.agents.progress import Repetition, TurnProgress
from bot.jobserver.agents.questions import Questions
from bot.jobserver.editors.interface import EditResult
from bot.jobserver.errors import EditError
from bot.jobserver.models import Question
from bot.jobserver.text import one_line

_MOST_ASKED = 5
_MOST_ASKED_CHARACTERS = 2500


class Turn:
    """Handles the messages of one session of an agent; implements `connection.TurnListener`."""

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
        self.should_end = asyncio.Event()
        self.end_reason = ""

    def updated(self, notification: SessionNotification) -> None:
        # Subagents can have their own sessions, whose messages are not part of the answer.
        if notification.session_id == self._session_id:
            self._progress.handle(notification)
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
        """Answers all open requests of an agent that is about to be ended."""
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
        if reason and not self.should_end.is_set():
            self.end_reason = reason
            self._log.line(f"[ended: {reason}]")
            self.should_end.set()

    def with_last_words(self, reason: str) -> str:
        """Adds the agent's last words to the reason why a turn broke off; Claude's name the cause."""
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
    was_answered: bool = False,
) -> EditResult:
    """Returns the result of a turn that did not fail.

    Its question is, in this order: a request for a person's permission; a question that nobody answered; or, if nothing
    was changed and no form answered (after which agents like to end with a polite question), the last paragraph of an
    answer that ends with a question mark.
    """
    if asked:
        return EditResult(summary=end.answer, question=permission_question(asked))
    if unanswered:
        return EditResult(summary=end.answer, question=unanswered.text, question_fields=unanswered.fields)
    if not is_changed and not was_answered and ends_with_question(end.answer):
        return EditResult(summary=end.answer, question=last_paragraph(end.answer))
    return EditResult(summary=end.answer, reason="" if is_changed else refusal_reason(refused))


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
