"""Masks secrets in what people and agents wrote, and holds back commits that contain secrets."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bot.jobserver.editors.interface import EditResult
from bot.jobserver.errors import HeldBackError, LeakScanError
from bot.jobserver.leaks.interface import Leak, LeakScan, Masking, Trees
from bot.jobserver.models import CheckResult
from bot.jobserver.questions import Question, QuestionField
from bot.jobserver.repository.git_repository import StartingPoint
from bot.jobserver.settings import PREFIX
from bot.jobserver.store.records import Instruction, ProgressUpdate

Mask = Callable[[str], str]
_SETTING = f"{PREFIX}ALLOWED_SECRETS"
_NAMED_AT_MOST = 3


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


@dataclass(frozen=True)
class SecretGuard:
    """Stands before every push."""

    scan: LeakScan

    async def check(self, start: StartingPoint, commit: str) -> None:
        """Raises HeldBackError for a commit that holds a secret which was nowhere before."""
        try:
            leaks = await self.scan.leaks(Trees(start.tree, start.base, commit))
        except LeakScanError as error:
            raise HeldBackError(
                f"Nothing was pushed, since the change could not be looked through for keys, which {error}. "
                f"Ask for less at once, or have the files added to {_SETTING}"
            ) from None
        if leaks:
            raise HeldBackError(in_words(leaks))


def in_words(leaks: Sequence[Leak]) -> str:
    """Returns which files hold what, and what can be done; a value of the server's own cannot be allowed."""
    more = len(leaks) - _NAMED_AT_MOST
    named = [_named(leak) for leak in leaks[:_NAMED_AT_MOST]]
    told = ", ".join([*named, *([f"and {more} more"] if more > 0 else [])])
    allowable = [f"'{leak.path}:{leak.rule}'" for leak in leaks[:_NAMED_AT_MOST] if leak.rule]
    allow = f", or have {' '.join(allowable)} added to {_SETTING} where it is none" if allowable else ""
    return f"Nothing was pushed, since the change holds {told}. Reply to have it taken out{allow}"


def _named(leak: Leak) -> str:
    if not leak.rule:
        return f"a key that this job server works with, in `{leak.path}`"
    return f"what looks like a secret ({leak.what}, rule {leak.rule}) in `{leak.path}`"
