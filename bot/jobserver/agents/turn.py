"""One turn of an agent: handles its updates and requests, and determines the result."""

from collections.abc import Sequence
from dataclasses import dataclass

from acp.schema import (
    CreateElicitationResponse,
    CreateFormSessionElicitationRequest,
    PromptResponse,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionNotification,
)

from bot.jobserver.agents.content import ends_with_question, last_paragraph
from bot.jobserver.agents.failures import TurnEnd, codex_failure, failed, stopped_early
from bot.jobserver.agents.named import Agent
from bot.jobserver.agents.permissions import PermissionPolicy
from bot.jobserver.agents.progress import TurnProgress
from bot.jobserver.agents.questions import Questions
from bot.jobserver.editors.interface import EditResult
from bot.jobserver.editors.job_log import JobLog
from bot.jobserver.errors import EditError
from bot.jobserver.store.records import Question
from bot.jobserver.text import one_line

_MOST_ASKED = 5
_MOST_ASKED_CHARACTERS = 2500


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
