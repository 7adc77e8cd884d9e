"""What the job API says and hears: the shapes of its specification."""

import re
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime, BeforeValidator, Field, field_serializer, field_validator

from bot.jobserver.questions import ApiModel, QuestionField
from bot.runtime.text import without_misleading

MOST_FILES = 20
"""Files that can come with one prompt."""
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,48}/[a-z0-9][a-z0-9!#$&^_.+-]{0,48}")


class Status(StrEnum):
    """The four states of a job."""

    ACTIVE = "active"
    COMPLETED = "completed"
    ARCHIVED = "archived"
    FAILED = "failed"


class Source(ApiModel):
    """The repository a job works on."""

    repository: str = Field(description="Repository the job works on.")
    ref: str = Field(description="Branch of that repository the job starts from.")


class StepStatus(StrEnum):
    """How far a step of a plan is, in the words of the Agent Client Protocol."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class PlanStep(ApiModel):
    """One step of what the agent means to do."""

    title: str
    status: StepStatus = StepStatus.PENDING


class ChangeKind(StrEnum):
    """How a file was changed."""

    ADDED = "added"
    CHANGED = "changed"
    RENAMED = "renamed"
    DELETED = "deleted"


class FileChange(ApiModel):
    """A file of the pull request."""

    path: str
    kind: ChangeKind
    added: int | None = Field(description="Lines added; null for a file that is not text.")
    removed: int | None = Field(description="Lines removed; null for a file that is not text.")
    title: str | None = Field(None, description="The page's title, where the file is a page that has one.")


class Changes(ApiModel):
    """What the pull request changes as a whole. `files` can be cut short; the three numbers never are."""

    files: tuple[FileChange, ...] = ()
    file_count: int = 0
    added: int = Field(0, description="Lines added in all text files.")
    removed: int = Field(0, description="Lines removed in all text files.")


class PullRequestState(StrEnum):
    """The state of a pull request."""

    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


class Extra(StrEnum):
    """What a pull request gets once it is open."""

    LABELS = "labels"
    REVIEW = "review"


class CheckStatus(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class CheckResult(ApiModel):
    """A check of the change, with the faults that the change brought in, one line each."""

    name: str
    status: CheckStatus
    problems: tuple[str, ...] = ()


class ProposalState(StrEnum):
    """How far a job's pull request is: pushed but not opened yet, or its state."""

    PENDING = "pending"
    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


class PullRequestDetails(ApiModel):
    """The job's pull request, as far as its keeper tells."""

    number: int | None = Field(None, description="Null while it is pending.")
    state: ProposalState = Field(
        description="`pending`: the change is pushed, and the server goes on trying to open it."
    )
    reason: str | None = Field(None, description="Why it is pending, or what of it is missing, such as its labels.")
    checks: tuple[CheckResult, ...] = Field((), description="This server's own checks, then those of its keeper.")


class PartialWork(ApiModel):
    """What an instruction that failed got done: kept, part of no pull request, and where the next message goes on."""

    files: int = Field(description="How many files it changes.")


class Cost(ApiModel):
    """Money, as far as an agent tells what it cost."""

    amount: float
    currency: str = Field(description="As ISO 4217 calls it, such as USD.")


class Usage(ApiModel):
    """What a job has taken of its model, over all its instructions."""

    tokens_sent: int = Field(description="Tokens sent to the model, those that it read from its cache included.")
    tokens_answered: int = Field(description="Tokens that it answered.")
    cost: Cost | None = Field(None, description="Null where no agent told it.")


class JobDetails(ApiModel):
    """What is known of a job beyond the specification. Every text is the agent's or a program's: foreign."""

    summary: str | None = Field(None, description="The agent's answer to the newest instruction, in Markdown.")
    reason: str | None = Field(None, description="Why it failed, or why nothing was changed, or who stopped it.")
    plan: tuple[PlanStep, ...] = Field((), description="What the agent means to do, with how far it is.")
    activity: str | None = Field(None, description="What the agent does just now, in a few words.")
    question: str | None = Field(None, description="What the agent asks; the next message answers it.")
    question_fields: tuple[QuestionField, ...] = Field(
        (),
        description="What the question asks for, where it offers choices. The message that answers holds an option's "
        "label; where there are several fields, a line each: `title: answer`.",
    )
    examples: tuple[str, ...] = Field(
        (), description="Messages that work as they stand, where somebody asked what can be done."
    )
    changes: Changes | None = Field(None, description="What the pull request changes.")
    pull_request: PullRequestDetails | None = None
    partial_work: PartialWork | None = Field(
        None, description="What a failed instruction got done; a POST to the job's /discard throws it away."
    )
    revision: str | None = Field(None, description="The commit id of the job's branch.")
    usage: Usage | None = Field(None, description="What it has taken of its model so far, where that is counted.")


def _one_line(value: str) -> str:
    """A name may hold anything, but it must not look like more than a name."""
    return " ".join("".join(c if c.isprintable() else " " for c in without_misleading(value)).split())


_Line = Annotated[str, Field(strict=True), BeforeValidator(lambda v: _one_line(v) if isinstance(v, str) else v)]


class Requester(ApiModel):
    """Who asked, as the client tells it."""

    name: _Line = Field(min_length=1, max_length=200)
    id: _Line | None = Field(None, max_length=200, description="The person's id where the client knows them from.")
    url: _Line | None = Field(
        None, max_length=3000, description="Where the request was made, such as a Slack thread: http or https."
    )

    @field_validator("url")
    @classmethod
    def _is_a_web_address(cls, value: str | None) -> str | None:
        if value is not None and not (value.startswith(("https://", "http://")) and len(value.split()) == 1):
            raise ValueError("it is not an address that begins with https:// or http://")
        return value


class AgentJob(ApiModel):
    """A job as clients see it."""

    id: str = Field(description="Unique identifier of the agent job.")
    status: Status = Field(description="Current status of the job.")
    source: Source
    model: str = Field(description="What edits: a model, a program or `builtin`.")
    pr_link: str | None = Field(description="The pull request; null while active or if no files changed.")
    created_at: AwareDatetime = Field(description="When the job was created, in UTC.")
    archived_at: AwareDatetime | None = Field(description="When the job was archived, in UTC.")
    details: JobDetails | None = Field(
        None,
        description="What is known beyond the specification; can be ignored.",
        exclude_if=lambda value: value is None,
    )

    @field_serializer("created_at", "archived_at")
    def _as_iso(self, value: datetime | None) -> str | None:
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z") if value else None


def media_type(value: object) -> str | None:
    """Returns what is a media type, such as `image/png`, in small letters; None for anything else."""
    kind = value.partition(";")[0].strip().lower() if isinstance(value, str) else ""
    return kind if _MEDIA_TYPE.fullmatch(kind) else None


class AttachedFile(ApiModel):
    """A file that comes with a prompt: uploaded before, and named here."""

    id: str = Field(strict=True, pattern=r"^[0-9a-f]{64}$", description="What the upload was answered with.")
    name: _Line = Field(min_length=1, max_length=200, description="Its name, such as diagram.png.")
    mimetype: Annotated[str | None, BeforeValidator(media_type)] = Field(
        None, description="What it is, such as image/png; by default what it was uploaded as."
    )


class UploadedFile(ApiModel):
    """A file that is kept, and can come with a prompt."""

    id: str = Field(description="The SHA-256 of its bytes, in hexadecimal digits.")


class PromptBody(ApiModel):
    """The body of both POST operations. Unknown fields are ignored."""

    prompt: str = Field(strict=True, min_length=1, description="What the agent is to do.")
    files: tuple[AttachedFile, ...] = Field((), max_length=MOST_FILES, description="Files that come with it.")
    requested_by: Requester | None = Field(
        None, description="Who asked: named in the commit and in the pull request. No part of what a key repeats."
    )

    @field_validator("prompt")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("it is empty")
        if "\0" in value:
            raise ValueError("it holds a NUL character")
        return value


class CancelBody(ApiModel):
    """The body of a cancel, which can be left out. Unknown fields are ignored."""

    requested_by: Requester | None = Field(None, description="Who stops it: named in the job's reason.")


class ErrorBody(ApiModel):
    """The body of every refusal."""

    error: str = Field(description="What is wrong and what to do, for people.")
