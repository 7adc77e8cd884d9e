"""What a job API can tell of a job beyond its specification. Every text is an agent's or a program's: foreign.

Each part can be missing, and then nothing is claimed of it. The edge (bot.jobs.details) bounds and cleans the texts.
"""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from bot.runtime.text import shortened

SHOWN_ANSWER = 1_200
"""Characters of an answer that go with the message about an end; the rest is fetched when somebody asks for it."""
SHOWN_WORDS = 1_000
"""Characters of a reason or a question."""
SHOWN_FILES = 8
SHOWN_CHECKS, SHOWN_PROBLEMS = 4, 3
SHOWN_EXAMPLES, LONGEST_EXAMPLE = 5, 75
"""Buttons, and how many characters each of them shows: no more is sent than what is seen."""
MOST_FIELDS, MOST_OPTIONS, LONGEST_LABEL, LONGEST_TITLE = 10, 100, 75, 200
"""Of a question's form: Slack shows a label of so many characters, and a list of so many options."""


class StepStatus(StrEnum):
    """How far a step of a plan is."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class ChangeKind(StrEnum):
    """How a file was changed."""

    ADDED = "added"
    CHANGED = "changed"
    RENAMED = "renamed"
    DELETED = "deleted"


class PullRequestState(StrEnum):
    """The state of a pull request; `pending`: the change is pushed, and the job API goes on trying to open it."""

    PENDING = "pending"
    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


class CheckStatus(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class PlanStep:
    """One step of what the agent means to do."""

    title: str
    status: StepStatus = StepStatus.PENDING


class FieldKind(StrEnum):
    """What answers a field of a question's form."""

    CHOICE = "choice"
    CHOICES = "choices"
    YES_OR_NO = "yes_or_no"
    NUMBER = "number"
    TEXT = "text"


@dataclass(frozen=True)
class QuestionField:
    """One thing that the agent asks. `options` are the labels of a choice or choices; `own_words`: another answer than
    these will do.
    """

    title: str
    kind: FieldKind
    options: tuple[str, ...] = ()
    own_words: bool = False
    required: bool = False


@dataclass(frozen=True)
class FileChange:
    """A file of the pull request. Lines added and removed are None for what is not text; `title` is a page's."""

    path: str
    kind: ChangeKind = ChangeKind.CHANGED
    added: int | None = None
    removed: int | None = None
    title: str = ""


@dataclass(frozen=True)
class Changes:
    """What the pull request changes as a whole; `files` can be fewer than `file_count`."""

    files: tuple[FileChange, ...] = ()
    file_count: int = 0
    added: int = 0
    removed: int = 0


@dataclass(frozen=True)
class CheckResult:
    """A check of the change, with its problems, a line each; they can be fewer than `problem_count`."""

    name: str
    status: CheckStatus
    problems: tuple[str, ...] = ()
    problem_count: int = 0


@dataclass(frozen=True)
class PullRequest:
    """The pull request, as far as its keeper tells. `reason`: why it is pending."""

    state: PullRequestState | None = None
    checks: tuple[CheckResult, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class JobDetails:
    """All that one look at a job told; what was not told is empty or None.

    `summary` is the agent's answer to the newest instruction, in Markdown; `reason` why it failed, why nothing was
    changed, or who stopped it; `activity` what it does just now; `revision` the commit id of the job's branch;
    `partial_files` in how many files it kept what the agent got done before it failed; `examples` are messages that
    work as they stand, where somebody asked what can be done; `question_fields` what can be chosen as an answer.
    """

    summary: str = ""
    reason: str = ""
    plan: tuple[PlanStep, ...] = ()
    activity: str = ""
    question: str = ""
    question_fields: tuple[QuestionField, ...] = ()
    examples: tuple[str, ...] = ()
    changes: Changes | None = None
    pull_request: PullRequest | None = None
    revision: str = ""
    partial_files: int = 0


NO_DETAILS = JobDetails()


@dataclass(frozen=True)
class Progress:
    """What of the details the card shows: the plan and the activity while the agent works, and the pull request with
    the first of the files that it changes. `why_pending` says why there is no pull request yet; `partial_files` are
    those in which the work of a failure is kept.
    """

    plan: tuple[PlanStep, ...] = ()
    activity: str = ""
    pull_request: PullRequestState | None = None
    changes: Changes | None = None
    why_pending: str = ""
    partial_files: int = 0


@dataclass(frozen=True)
class Answer:
    """How the agent's answer begins. `id` is a digest of the whole, which is fetched again when it is asked for; `cut`:
    there is more of it.
    """

    text: str
    id: str
    cut: bool = False


@dataclass(frozen=True)
class JobReport:
    """What a job told of how a round of it ended.

    `unchanged`: whether the job's branch is as it was before the round; None where that was not told.
    """

    answer: Answer | None = None
    reason: str = ""
    question: str = ""
    unchanged: bool | None = None
    changes: Changes | None = None
    failed_checks: tuple[CheckResult, ...] = ()
    partial_files: int = 0
    examples: tuple[str, ...] = ()
    question_fields: tuple[QuestionField, ...] = ()


@dataclass(frozen=True)
class EndMark:
    """By what one end is told from another that looks the same: a digest of its words, and the branch's commit."""

    words: str = ""
    revision: str = ""

    def __bool__(self) -> bool:
        return bool(self.words or self.revision)


def progress_of(details: JobDetails, *, ended: bool) -> Progress:
    """What the card shows of the details."""
    state, changes = details.pull_request.state if details.pull_request else None, _first_files(details.changes)
    if ended:
        pending, kept = _why_pending(details.pull_request), details.partial_files
        return Progress(pull_request=state, changes=changes, why_pending=pending, partial_files=kept)
    return Progress(details.plan, details.activity, state, changes)


def _why_pending(pull_request: PullRequest | None) -> str:
    if pull_request is None or pull_request.state is not PullRequestState.PENDING:
        return ""
    return shortened(pull_request.reason, SHOWN_WORDS)


def end_mark(details: JobDetails) -> EndMark:
    """By what this end is known again."""
    words = f"{details.summary}\0{details.reason}\0{details.question}"
    return EndMark(digest(words) if words.strip("\0") else "", details.revision)


def report_of(details: JobDetails, *, unchanged: bool | None) -> JobReport:
    """What of the details is told at an end, shortened."""
    checks = details.pull_request.checks if details.pull_request else ()
    failed = [check for check in checks if check.status is CheckStatus.FAILED][:SHOWN_CHECKS]
    return JobReport(
        answer=answer_of(details.summary),
        reason=shortened(details.reason, SHOWN_WORDS),
        question=shortened(details.question, SHOWN_WORDS),
        unchanged=unchanged,
        changes=None if unchanged else _first_files(details.changes),
        failed_checks=tuple(_first_problems(check) for check in failed),
        partial_files=details.partial_files,
        examples=details.examples[:SHOWN_EXAMPLES],
        question_fields=details.question_fields,
    )


def answer_of(summary: str) -> Answer | None:
    """The beginning of an answer, with what it takes to find the whole; None where there is no answer."""
    if not summary:
        return None
    text = shortened(summary, SHOWN_ANSWER)
    return Answer(text, digest(summary), cut=text != summary)


def digest(text: str) -> str:
    """The same for the same text."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _first_files(changes: Changes | None) -> Changes | None:
    if changes is None:
        return None
    return Changes(changes.files[:SHOWN_FILES], changes.file_count, changes.added, changes.removed)


def _first_problems(check: CheckResult) -> CheckResult:
    return CheckResult(check.name, check.status, check.problems[:SHOWN_PROBLEMS], check.problem_count)
