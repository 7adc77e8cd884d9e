"""Masks and bounds what people and agents wrote."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from bot.jobapi.models import CheckResult, PlanStep
from bot.jobserver.editors.interface import EditResult
from bot.jobserver.leaks.scan import Masking
from bot.jobserver.store.records import Instruction, ProgressUpdate, Question
from bot.jobserver.text import one_line, shortened

Mask = Callable[[str], str]
MAX_REASON = 2_000
MAX_QUESTION = 4_000
_MAX_SUMMARY = 20_000
_MOST_SEARCHED = 200_000
"""Characters of an answer that are searched for secrets; the rest is dropped."""
_MAX_EXAMPLE, _MOST_EXAMPLES = 200, 5
_MAX_ACTIVITY = 200
_MAX_STEP, _MOST_STEPS = 300, 50


async def described(instruction: Instruction, masking: Masking) -> Instruction:
    """Returns the instruction as shown in commits and pull requests: also without what only looks like a secret."""
    words = await asyncio.to_thread(masking.all, instruction.words)
    requester = instruction.requester
    name = masking.known(requester.name) if requester else ""
    return replace(instruction, words=words, requester=requester and replace(requester, name=name))


def safe_result(result: EditResult, masking: Masking) -> EditResult:
    """Returns an editor's answer as it may be stored and shown. Blocks."""

    def mask(text: str) -> str:
        return masking.all(text[:_MOST_SEARCHED])

    return EditResult(
        summary=shortened(mask(result.summary), _MAX_SUMMARY),
        reason=shortened(mask(result.reason), MAX_REASON),
        question=shortened(mask(result.question), MAX_QUESTION),
        closing_question=shortened(mask(result.closing_question), MAX_QUESTION),
        notes=tuple(map(mask, result.notes)),
        examples=tuple(one_line(mask(example), _MAX_EXAMPLE) for example in result.examples[:_MOST_EXAMPLES]),
        question_fields=tuple(field.with_words(mask) for field in result.question_fields),
    )


def safe_question(question: Question, mask: Mask) -> Question:
    fields = tuple(field.with_words(mask) for field in question.fields)
    return Question(shortened(mask(question.text), MAX_QUESTION), fields)


def bounded_plan(steps: Sequence[PlanStep]) -> tuple[PlanStep, ...]:
    return tuple(PlanStep(title=one_line(step.title, _MAX_STEP), status=step.status) for step in steps[:_MOST_STEPS])


def bounded_activity(title: str) -> str:
    return one_line(title, _MAX_ACTIVITY)


def masked_update(update: ProgressUpdate, mask: Mask) -> ProgressUpdate:
    plan = update.plan
    return replace(
        update,
        plan=plan and tuple(step.model_copy(update={"title": mask(step.title)}) for step in plan),
        activity=update.activity and mask(update.activity),
    )


def masked_checks(checks: Sequence[CheckResult], mask: Mask) -> tuple[CheckResult, ...]:
    """Masks the output of checks: their programs may have received keys."""
    return tuple(check.model_copy(update={"problems": tuple(map(mask, check.problems))}) for check in checks)
