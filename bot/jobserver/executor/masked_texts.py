"""Texts of people and agents without secrets, as they are kept, shown and sent on."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from bot.jobserver.editors.interface import EditResult
from bot.jobserver.leaks.interface import Masking
from bot.jobserver.models import CheckResult
from bot.jobserver.questions import Question, QuestionField
from bot.jobserver.store.records import Instruction, ProgressUpdate

Mask = Callable[[str], str]


async def described(instruction: Instruction, masking: Masking) -> Instruction:
    """Returns the instruction as commits and pull requests tell of it: without what only looks like a secret, too."""
    prompt = await asyncio.to_thread(masking.all, instruction.prompt)
    requester = instruction.requester
    name = masking.known(requester.name) if requester else ""
    return replace(instruction, prompt=prompt, requester=requester and requester.model_copy(update={"name": name}))


def masked_result(result: EditResult, mask: Mask) -> EditResult:
    return EditResult(
        mask(result.summary),
        mask(result.reason),
        mask(result.question),
        tuple(map(mask, result.notes)),
        tuple(map(mask, result.examples)),
        masked_fields(result.question_fields, mask),
    )


def masked_question(question: Question, mask: Mask) -> Question:
    return Question(mask(question.words), masked_fields(question.fields, mask))


def masked_fields(fields: Sequence[QuestionField], mask: Mask) -> tuple[QuestionField, ...]:
    return tuple(field.with_words(mask) for field in fields)


def masked_update(update: ProgressUpdate, mask: Mask) -> ProgressUpdate:
    plan = update.plan
    return replace(
        update,
        plan=plan and tuple(step.model_copy(update={"title": mask(step.title)}) for step in plan),
        activity=update.activity and mask(update.activity),
    )


def masked_checks(checks: Sequence[CheckResult], mask: Mask) -> tuple[CheckResult, ...]:
    """Programs that check may have been given keys."""
    return tuple(check.model_copy(update={"problems": tuple(map(mask, check.problems))}) for check in checks)
