"""Masks and bounds what people and agents wrote, and holds back commits that contain secrets."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bot.jobserver.editors.interface import EditResult
from bot.jobserver.errors import HeldBackError, LeakScanError
from bot.jobserver.leaks.interface import Leak, LeakScan, Masking, Trees
from bot.jobserver.models import CheckResult, PlanStep, Question
from bot.jobserver.repository.git_repository import StartingPoint
from bot.jobserver.settings import PREFIX
from bot.jobserver.store.records import Instruction, ProgressUpdate
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
_SETTING = f"{PREFIX}ALLOWED_SECRETS"
_MOST_NAMED = 3


async def described(instruction: Instruction, masking: Masking) -> Instruction:
    """Returns the instruction as shown in commits and pull requests: also without what only looks like a secret."""
    words = await asyncio.to_thread(masking.all, instruction.words)
    requester = instruction.requester
    name = masking.known(requester.name) if requester else ""
    return replace(instruction, words=words, requester=requester and requester.model_copy(update={"name": name}))


def safe_result(result: EditResult, masking: Masking) -> EditResult:
    """Returns an editor's answer as it may be stored and shown. Blocks."""

    def mask(text: str) -> str:
        return masking.all(text[:_MOST_SEARCHED])

    return EditResult(
        summary=shortened(mask(result.summary), _MAX_SUMMARY),
        reason=shortened(mask(result.reason), MAX_REASON),
        question=shortened(mask(result.question), MAX_QUESTION),
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


@dataclass(frozen=True)
class SecretGuard:
    """Checks commits before every push."""

    scan: LeakScan

    async def check(self, start: StartingPoint, commit: str) -> None:
        """Raises HeldBackError for a commit that adds a secret."""
        try:
            leaks = await self.scan.leaks(Trees(start.tree, start.base, commit))
        except LeakScanError as error:
            raise HeldBackError(
                f"Nothing was pushed, since the change could not be searched for keys: the search {error}. "
                f"Ask for less at once, or have the files added to {_SETTING}"
            ) from None
        if leaks:
            raise HeldBackError(in_words(leaks))


def in_words(leaks: Sequence[Leak]) -> str:
    """Says which files contain what, and what to do; values of the server itself cannot be allowed."""
    more = len(leaks) - _MOST_NAMED
    named = [_named(leak) for leak in leaks[:_MOST_NAMED]]
    found = ", ".join([*named, *([f"and {more} more"] if more > 0 else [])])
    allowable = [f"'{leak.path}:{leak.rule}'" for leak in leaks[:_MOST_NAMED] if leak.rule]
    allow = f", or, if it is none, have {' '.join(allowable)} added to {_SETTING}" if allowable else ""
    return f"Nothing was pushed, since the change contains {found}. Reply to have it removed{allow}"


def _named(leak: Leak) -> str:
    if not leak.rule:
        return f"a key of this job server, in `{leak.path}`"
    return f"what looks like a secret ({leak.what}, rule {leak.rule}) in `{leak.path}`"
