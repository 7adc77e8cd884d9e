"""Bounds what agents and people wrote, so that it can be stored and passed on."""

from collections.abc import Sequence

from bot.jobserver.editors.interface import EditResult
from bot.jobserver.models import PlanStep
from bot.jobserver.questions import Question
from bot.jobserver.text import one_line, shortened

MAX_SUMMARY = 20_000
MAX_REASON = 2_000
MAX_QUESTION = 4_000
MAX_EXAMPLE, MOST_EXAMPLES = 200, 5
_MAX_ACTIVITY = 200
_MAX_STEPS = 50
_MAX_STEP = 300


def bounded_result(result: EditResult) -> EditResult:
    return EditResult(
        summary=shortened(result.summary, MAX_SUMMARY),
        reason=shortened(result.reason, MAX_REASON),
        question=shortened(result.question, MAX_QUESTION),
        notes=result.notes,
        examples=tuple(one_line(example, MAX_EXAMPLE) for example in result.examples[:MOST_EXAMPLES]),
        question_fields=result.question_fields,
    )


def bounded_question(question: Question) -> Question:
    return Question(shortened(question.words, MAX_QUESTION), question.fields)


def bounded_plan(steps: Sequence[PlanStep]) -> tuple[PlanStep, ...]:
    return tuple(PlanStep(title=one_line(step.title, _MAX_STEP), status=step.status) for step in steps[:_MAX_STEPS])


def bounded_activity(title: str) -> str:
    return one_line(title, _MAX_ACTIVITY)
