"""The remote Agent job: its statuses, its problems, and the details that a job API can report beyond its specification.

All texts of the details come from an agent or a program: untrusted. Each part can be missing, and then nothing is
claimed about it. `bot.jobapi.models` bounds and cleans the texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from bot.jobapi import models
from bot.runtime.text import shortened

ACTIVE, COMPLETED, ARCHIVED, FAILED = models.Status


class Problem(StrEnum):
    """What prevents a job from working, as the card shows it."""

    OUT_OF_REACH = "out_of_reach"
    RATE_LIMITED = "rate_limited"
    """429: the job API's rate limit is used up."""
    BUSY = "busy"
    """503 with Retry-After."""
    FAULTY = "faulty"
    """The job API's responses are unusable."""
    NOT_ALLOWED = "not_allowed"
    REJECTED = "rejected"
    UNCERTAIN = "uncertain"
    GONE = "gone"
    CANNOT_POST = "cannot_post"
    STOPPED = "stopped"
    """The job was stopped before it was sent."""
    WITHDRAWN = "withdrawn"
    """The message that requested it was deleted before it was sent."""


SHOWN_ANSWER = 1_200
"""Characters of an answer in the message about an end; the rest is fetched on demand."""
SHOWN_WORDS = 1_000
"""Characters of a reason or a question."""
SHOWN_FILES = 8
SHOWN_CHECKS, SHOWN_PROBLEMS = 4, 3
SHOWN_EXAMPLES, LONGEST_EXAMPLE = 5, 75
"""The number of buttons, and the characters on each; a button sends exactly the text that it shows."""
MOST_FIELDS, MOST_OPTIONS, LONGEST_LABEL, LONGEST_TITLE = 10, 100, 75, 200
"""Limits of a question's form. Slack limits the characters of a label, and the options of a list."""


@dataclass(frozen=True)
class QuestionField:
    """A field of a question's form. `options` are the labels of a choice; `own_words` also allows other answers."""

    title: str
    kind: models.FieldKind
    options: tuple[str, ...] = ()
    own_words: bool = False
    required: bool = False


class FailedCheck(models.CheckResult):
    """A failed check with the first of its problems. There can be fewer than `problem_count`."""

    problem_count: int = 0


NO_DETAILS = models.JobDetails()


@dataclass(frozen=True)
class Progress:
    """The details that the card shows: the plan and the activity while the agent works, and the pull request with the
    first of its files. `why_pending` says why there is no pull request yet; `partial_files` counts the files with work
    that was kept after a failure; `is_answer`: only an answer was asked for.
    """

    plan: tuple[models.PlanStep, ...] = ()
    activity: str = ""
    pull_request: models.PullRequestState | None = None
    changes: models.Changes | None = None
    why_pending: str = ""
    partial_files: int = 0
    is_answer: bool = False


@dataclass(frozen=True)
class Answer:
    """The beginning of the agent's answer. `id` is a digest of the whole answer, which is fetched again on demand;
    `cut` means that there is more.
    """

    text: str
    id: str
    cut: bool = False


@dataclass(frozen=True)
class JobReport:
    """The details about the end of a round.

    `unchanged`: whether the job's branch is the same as before the round; None if unknown. `mode` is what the round was
    for, and `pages_read` what its answer is based on.
    """

    answer: Answer | None = None
    reason: str = ""
    question: str = ""
    unchanged: bool | None = None
    changes: models.Changes | None = None
    failed_checks: tuple[FailedCheck, ...] = ()
    partial_files: int = 0
    examples: tuple[str, ...] = ()
    question_fields: tuple[QuestionField, ...] = ()
    mode: models.Mode | None = None
    pages_read: tuple[str, ...] = ()


@dataclass(frozen=True)
class EndMark:
    """Distinguishes ends with the same status: a digest of the texts, and the branch's commit id."""

    words: str = ""
    revision: str = ""

    def __bool__(self) -> bool:
        return bool(self.words or self.revision)


def progress_of(details: models.JobDetails, *, ended: bool) -> Progress:
    """Returns the part of the details that the card shows."""
    told, changes = details.pull_request, _first_files(details.changes)
    state = told.state if told else None
    if not ended:
        return Progress(details.plan, details.activity or "", state, changes)
    why = shortened(told.reason or "", SHOWN_WORDS) if told and state is models.PullRequestState.PENDING else ""
    is_answer, partial = details.mode is models.Mode.ASK, details.partial_files
    return Progress(pull_request=state, changes=changes, why_pending=why, partial_files=partial, is_answer=is_answer)


def end_mark(details: models.JobDetails) -> EndMark:
    """Returns the mark by which this end can be recognized."""
    words = "\0".join(text or "" for text in (details.summary, details.reason, details.question))
    return EndMark(digest(words) if words.strip("\0") else "", details.revision or "")


def report_of(details: models.JobDetails, *, unchanged: bool | None) -> JobReport:
    """Returns the part of the details that is announced at an end, shortened."""
    checks = details.pull_request.checks if details.pull_request else ()
    failed = [check for check in checks if check.status is models.CheckStatus.FAILED][:SHOWN_CHECKS]
    # One that does not fit on a button is left out, because people would send text that they cannot see.
    examples = dict.fromkeys(each for each in details.examples if len(each) <= LONGEST_EXAMPLE)
    return JobReport(
        answer=answer_of(details.summary),
        reason=shortened(details.reason or "", SHOWN_WORDS),
        question=shortened(details.question or "", SHOWN_WORDS),
        unchanged=unchanged,
        changes=None if unchanged else _first_files(details.changes),
        failed_checks=tuple(map(_first_problems, failed)),
        partial_files=details.partial_files,
        examples=tuple(examples)[:SHOWN_EXAMPLES],
        question_fields=question_form(details.question_fields),
        mode=details.mode,
        pages_read=details.pages_read,
    )


def question_form(fields: Sequence[models.QuestionField]) -> tuple[QuestionField, ...]:
    """Returns the form for a question's answer: all fields or none, because an incomplete form could not be submitted.

    Titles and labels identify the answers, so each is shown whole, and once.
    """
    form = tuple(
        QuestionField(
            each.title, each.kind, tuple(option.label for option in each.options), each.own_words, each.required
        )
        for each in fields
    )
    has_titles_of_its_own = len({field.title for field in form}) == len(form) <= MOST_FIELDS
    return form if has_titles_of_its_own and all(map(_is_whole, form)) else ()


def _is_whole(field: QuestionField) -> bool:
    labels, is_choice = field.options, field.kind in {models.FieldKind.CHOICE, models.FieldKind.CHOICES}
    fit = len(field.title) <= LONGEST_TITLE and all(len(label) <= LONGEST_LABEL for label in labels)
    return fit and len(set(labels)) == len(labels) <= MOST_OPTIONS and bool(labels) == is_choice


def answer_of(summary: str | None) -> Answer | None:
    """Returns the beginning of an answer, with the digest of the whole; None if there is no answer."""
    if not summary:
        return None
    text = shortened(summary, SHOWN_ANSWER)
    return Answer(text, digest(summary), cut=text != summary)


def digest(text: str) -> str:
    """Returns a short hash of a text."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _first_files(changes: models.Changes | None) -> models.Changes | None:
    return changes and changes.model_copy(update={"files": changes.files[:SHOWN_FILES]})


def _first_problems(check: models.CheckResult) -> FailedCheck:
    problems = check.problems
    return FailedCheck(
        name=check.name, status=check.status, problems=problems[:SHOWN_PROBLEMS], problem_count=len(problems)
    )
