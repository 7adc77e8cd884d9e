"""The values that the store of jobs takes and returns."""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime

import aiosqlite

from bot.jobserver.models import (
    AgentJob,
    AttachedFile,
    CheckResult,
    Cost,
    Extra,
    JobDetails,
    PartialWork,
    PlanStep,
    ProposalState,
    Requester,
    Source,
    Status,
    Usage,
)
from bot.jobserver.questions import Question, QuestionField
from bot.jobserver.usage import Money, Spent


@dataclass(frozen=True)
class JobTemplate:
    """What all new jobs have in common."""

    repository: str
    ref: str
    model: str


@dataclass(frozen=True)
class PromptRequest:
    """A create (no job id) or a message, as a client sent it."""

    project_id: str
    prompt: str
    job_id: str | None = None
    idempotency_key: str | None = None
    requester: Requester | None = None
    files: tuple[AttachedFile, ...] = ()

    @property
    def fingerprint(self) -> str:
        """What has to be the same when an Idempotency-Key comes again.

        Who asked is not part of it: a person's name may have changed between a request and its repetition.
        """
        files = [[file.id, file.name] for file in self.files]
        # Without files it is what it was before there were any: keys are kept for long.
        same = [self.job_id, self.prompt, *([files] if files else [])]
        return hashlib.sha256(json.dumps(same).encode()).hexdigest()


@dataclass(frozen=True)
class EarlierInstruction:
    """An instruction of the same job that has ended, and what was answered."""

    prompt: str
    answer: str


@dataclass(frozen=True)
class Attachment:
    """An uploaded file that came with an instruction of a job. `size` is in bytes."""

    upload_id: str
    name: str
    mimetype: str
    size: int
    instruction: int


@dataclass(frozen=True)
class Instruction:
    """One prompt of a job, on its way through the queue.

    `session`: the agent's own id of the job's conversation. `partial`: the commit of what an
    instruction before got done before it failed. `attempts`: how often it was begun, this time included.
    `commit`, `summary`, `question`, `question_fields`: what was pushed for it, and what the editor said, before an
    interruption.
    `attachments`: the files that came with it and with those before, the oldest first.
    """

    number: int
    job_id: str
    branch: str
    prompt: str
    requester: Requester | None = None
    conversation: tuple[EarlierInstruction, ...] = ()
    session: str | None = None
    partial: str | None = None
    attempts: int = 1
    commit: str | None = None
    summary: str = ""
    question: str = ""
    question_fields: tuple[QuestionField, ...] = ()
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True)
class QueuedReply:
    """A message of a job that waits behind an instruction, and may answer its question."""

    number: int
    prompt: str


@dataclass(frozen=True)
class Outcome:
    """How an instruction ended. `failure`: why it failed. `commit`: what was pushed.

    Of `details`, the summary, reason, question and examples replace those of the job; changes, pull request and
    revision do where they are there; the plan stays as it was told last.
    """

    failure: str | None = None
    commit: str | None = None
    pr_link: str | None = None
    details: JobDetails = field(default_factory=JobDetails)


@dataclass(frozen=True)
class OwedProposal:
    """What was pushed for a job, and what its pull request does not have yet.

    `description` is empty, and `extras` are missing alone, where it is open already. `checks` are those of the newest
    change. `version` grows with what is owed.
    """

    job_id: str
    branch: str
    title: str
    description: str
    checks: tuple[CheckResult, ...]
    extras: tuple[Extra, ...]
    requester: Requester | None
    version: int
    failures: int


@dataclass(frozen=True)
class ProgressUpdate:
    """What an editor told since the last update; None is nothing new."""

    plan: tuple[PlanStep, ...] | None = None
    activity: str | None = None
    session: str | None = None
    spent: Spent | None = None


@dataclass(frozen=True)
class Cancellation:
    """A job after its cancel; `running` is the number of the instruction that has still to be stopped."""

    job: AgentJob
    running: int | None = None


def job_from_row(row: aiosqlite.Row) -> AgentJob:
    details = JobDetails.model_validate_json(row["details"])
    # A failure is not hidden by what the next instruction said.
    told: dict[str, object] = {"reason": row["failure"] or details.reason or _why_pending(row, details)}
    if row["partial_commit"] and row["status"] != Status.ACTIVE:
        told["partial_work"] = PartialWork(files=row["partial_files"])
    if row["status"] == Status.ACTIVE:
        # What it said is told with the end: what was changed is still being pushed.
        told |= {"summary": None, "question": None, "question_fields": (), "examples": (), **_open_question(row)}
    told["usage"] = usage_from_row(row)
    details = details.model_copy(update=told)
    return AgentJob(
        id=row["id"],
        status=Status(row["status"]),
        source=Source(repository=row["repository"], ref=row["ref"]),
        model=row["model"],
        pr_link=None if row["status"] == Status.ACTIVE or _is_pending(details) else row["pr_link"],
        created_at=datetime.fromisoformat(row["created_at"]),
        archived_at=datetime.fromisoformat(row["archived_at"]) if row["archived_at"] else None,
        details=details if details != JobDetails() else None,
    )


def question_as_json(question: Question) -> str:
    """Returns a question that is open as it is kept."""
    return JobDetails(question=question.words, question_fields=question.fields).model_dump_json(exclude_defaults=True)


def _open_question(row: aiosqlite.Row) -> dict[str, object]:
    if row["open_question"] is None:
        return {}
    told = JobDetails.model_validate_json(row["open_question"])
    return {"question": told.question, "question_fields": told.question_fields}


def _why_pending(row: aiosqlite.Row, details: JobDetails) -> str | None:
    """For whoever reads no more than the reason."""
    known = details.pull_request
    if known is None or not _is_pending(details) or not known.reason:
        return None
    why = f"The change was pushed to {row['branch']}, but has no pull request yet: {known.reason.rstrip('.')}."
    return f"{why} It is tried again by itself."


def _is_pending(details: JobDetails) -> bool:
    """Whether the newest change has no pull request yet: that of an earlier branch, which has ended, is not its."""
    return details.pull_request is not None and details.pull_request.state is ProposalState.PENDING


def usage_from_row(row: aiosqlite.Row) -> Usage | None:
    spent = spent_from_row(row)
    if spent == Spent():
        return None
    cost = Cost(amount=spent.money.amount, currency=spent.money.currency) if spent.money else None
    return Usage(tokens_sent=spent.sent, tokens_answered=spent.answered, cost=cost)


def spent_from_row(row: aiosqlite.Row) -> Spent:
    money = Money(row["money"], row["currency"]) if row["currency"] else None
    return Spent(row["tokens_sent"], row["tokens_answered"], money)


def requester_from_row(row: aiosqlite.Row) -> Requester | None:
    if row["requester_name"] is None:
        return None
    return Requester(name=row["requester_name"], id=row["requester_id"], url=row["requester_url"])


def branch_name(job_id: str, number: int) -> str:
    """Returns the name of a job's branch; the first one has no number."""
    return f"pagehand/{job_id}" if number == 1 else f"pagehand/{job_id}-{number}"


def as_text(moment: datetime) -> str:
    """Returns a moment as the tables hold it: in UTC, so that text sorts as time does."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
