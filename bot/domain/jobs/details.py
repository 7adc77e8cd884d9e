"""Details that a job API can report beyond its specification. All texts come from an agent or a program: untrusted.

Each part can be missing, and then nothing is claimed about it. `bot.jobapi.details` limits and cleans the texts.
"""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from bot.runtime.text import shortened

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


class StepStatus(StrEnum):
    """The state of a step of the plan."""

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
    """The state of a pull request. `pending`: the change is pushed, and the job API is still trying to open it."""

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
    """One step of the agent's plan."""

    title: str
    status: StepStatus = StepStatus.PENDING


class FieldKind(StrEnum):
    """The kind of answer that a field of a question's form takes."""

    CHOICE = "choice"
    CHOICES = "choices"
    YES_OR_NO = "yes_or_no"
    NUMBER = "number"
    TEXT = "text"


@dataclass(frozen=True)
class QuestionField:
    """A field of a question's form. `options` are the labels of a choice; `own_words` also allows other answers."""

    title: str
    kind: FieldKind
    options: tuple[str, ...] = ()
    own_words: bool = False
    required: bool = False


@dataclass(frozen=True)
class FileChange:
    """A file of the pull request. `added` and `removed` count lines, None for binary files; `title` is the page's."""

    path: str
    kind: ChangeKind = ChangeKind.CHANGED
    added: int | None = None
    removed: int | None = None
    title: str = ""


@dataclass(frozen=True)
class Changes:
    """The changes of the pull request. `files` can be fewer than `file_count`."""

    files: tuple[FileChange, ...] = ()
    file_count: int = 0
    added: int = 0
    removed: int = 0


@dataclass(frozen=True)
class CheckResult:
    """A check of the change, with its problems, a line each. There can be fewer than `problem_count`."""

    name: str
    status: CheckStatus
    problems: tuple[str, ...] = ()
    problem_count: int = 0


@dataclass(frozen=True)
class PullRequest:
    """What is known of the pull request. `reason`: why it is pending."""

    state: PullRequestState | None = None
    checks: tuple[CheckResult, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class JobDetails:
    """All the details from one poll of a job. Those not reported are empty or None.

    Attributes:
        summary: The agent's answer to the newest instruction, in Markdown.
        reason: Why the job failed, why nothing was changed, or who stopped it.
        plan: The agent's plan.
        activity: What the agent is doing now.
        question: What the agent asks.
        question_fields: A form for the answer.
        examples: Messages that work as they are, if one was not understood.
        changes: What the pull request changes.
        pull_request: The pull request.
        revision: The commit id of the job's branch.
        partial_files: The number of files with work that was kept after a failure.
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
    """The details that the card shows: the plan and the activity while the agent works, and the pull request with the
    first of its files. `why_pending` says why there is no pull request yet; `partial_files` counts the files with work
    that was kept after a failure.
    """

    plan: tuple[PlanStep, ...] = ()
    activity: str = ""
    pull_request: PullRequestState | None = None
    changes: Changes | None = None
    why_pending: str = ""
    partial_files: int = 0


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

    `unchanged`: whether the job's branch is the same as before the round; None if unknown.
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
    """Distinguishes ends with the same status: a digest of the texts, and the branch's commit id."""

    words: str = ""
    revision: str = ""

    def __bool__(self) -> bool:
        return bool(self.words or self.revision)


def progress_of(details: JobDetails, *, ended: bool) -> Progress:
    """Returns the part of the details that the card shows."""
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
    """Returns the mark by which this end can be recognized."""
    words = f"{details.summary}\0{details.reason}\0{details.question}"
    return EndMark(digest(words) if words.strip("\0") else "", details.revision)


def report_of(details: JobDetails, *, unchanged: bool | None) -> JobReport:
    """Returns the part of the details that is announced at an end, shortened."""
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
    """Returns the beginning of an answer, with the digest of the whole; None if there is no answer."""
    if not summary:
        return None
    text = shortened(summary, SHOWN_ANSWER)
    return Answer(text, digest(summary), cut=text != summary)


def digest(text: str) -> str:
    """Returns a short hash of a text."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _first_files(changes: Changes | None) -> Changes | None:
    if changes is None:
        return None
    return Changes(changes.files[:SHOWN_FILES], changes.file_count, changes.added, changes.removed)


def _first_problems(check: CheckResult) -> CheckResult:
    return CheckResult(check.name, check.status, check.problems[:SHOWN_PROBLEMS], check.problem_count)
