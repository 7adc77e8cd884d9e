"""The data model of the job API, as its specification defines it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Self

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_serializer,
    field_validator,
)
from pydantic.alias_generators import to_camel

from bot.runtime.text import without_misleading

MOST_FILES = 20
"""Files that can come with one prompt."""
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,48}/[a-z0-9][a-z0-9!#$&^_.+-]{0,48}")


class ApiModel(BaseModel):
    """Base of all requests and responses: field names are in camelCase, as in the specification."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)


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
    """The status of a plan's step, as in the Agent Client Protocol."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class PlanStep(ApiModel):
    """One step of the agent's plan."""

    title: str
    status: StepStatus = StepStatus.PENDING


class ChangeKind(StrEnum):
    """How a file was changed."""

    ADDED = "added"
    CHANGED = "changed"
    RENAMED = "renamed"
    DELETED = "deleted"


class FileChange(ApiModel):
    """A changed file of the pull request."""

    path: str
    kind: ChangeKind
    added: int | None = Field(description="Lines added; null for a file that is not text.")
    removed: int | None = Field(description="Lines removed; null for a file that is not text.")
    title: str | None = Field(None, description="The page's title, where the file is a page that has one.")


class Changes(ApiModel):
    """All changes of the pull request. `files` may be truncated; the three totals never are."""

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
    """What is added to a pull request once it is open."""

    LABELS = "labels"
    REVIEW = "review"


class CheckStatus(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class CheckResult(ApiModel):
    """The result of a check, with the faults that the change introduced, a line each."""

    name: str
    status: CheckStatus
    problems: tuple[str, ...] = ()


class ProposalState(StrEnum):
    """The state of a job's pull request, or `pending` if the branch is pushed but not yet proposed."""

    PENDING = "pending"
    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


class PullRequestDetails(ApiModel):
    """The job's pull request, as far as its host reports it."""

    number: int | None = Field(None, description="Null while it is pending.")
    state: ProposalState = Field(
        description="`pending`: the change is pushed, and the server keeps trying to open the pull request."
    )
    reason: str | None = Field(None, description="Why it is pending, or what it lacks, such as labels.")
    checks: tuple[CheckResult, ...] = Field((), description="This server's own checks, then those of its host.")


class PartialWork(ApiModel):
    """The work of a failed instruction: it is kept outside the pull request, and the next message continues from it."""

    files: int = Field(description="How many files it changes.")


class Cost(ApiModel):
    """The cost in money, as far as an agent reports it."""

    amount: float
    currency: str = Field(description="An ISO 4217 code, such as USD.")


class Usage(ApiModel):
    """A job's use of its model, over all its instructions."""

    tokens_sent: int = Field(description="Tokens sent to the model, including those read from its cache.")
    tokens_answered: int = Field(description="Tokens in its answers.")
    cost: Cost | None = Field(None, description="Null if no agent reported it.")


class FieldKind(StrEnum):
    """What kind of answer a field takes."""

    CHOICE = "choice"
    CHOICES = "choices"
    YES_OR_NO = "yes_or_no"
    NUMBER = "number"
    TEXT = "text"


class QuestionOption(ApiModel):
    """One of the answers on offer."""

    label: str = Field(description="The text of the message that chooses this option.")
    description: str | None = None


class QuestionField(ApiModel):
    """One part of a question."""

    title: str
    kind: FieldKind
    options: tuple[QuestionOption, ...] = Field((), description="For a choice or choices.")
    own_words: bool = Field(False, description="Whether an answer other than the options is accepted.")
    required: bool = False

    def with_words(self, change: Callable[[str], str]) -> Self:
        """Returns the field with all its texts changed, for example by a function that masks secrets."""
        options = tuple(
            QuestionOption(label=change(option.label), description=option.description and change(option.description))
            for option in self.options
        )
        return self.model_copy(update={"title": change(self.title), "options": options})


@dataclass(frozen=True)
class Question:
    """An agent's question. `text`: the whole question, in Markdown; `fields`: what can be chosen."""

    text: str
    fields: tuple[QuestionField, ...] = ()


class JobDetails(ApiModel):
    """A job's details beyond the specification. All texts come from agents or programs: do not trust them."""

    summary: str | None = Field(None, description="The agent's answer to the newest instruction, in Markdown.")
    reason: str | None = Field(None, description="Why it failed, or why nothing was changed, or who stopped it.")
    plan: tuple[PlanStep, ...] = Field((), description="The agent's plan and its progress.")
    activity: str | None = Field(None, description="What the agent is doing right now, in a few words.")
    question: str | None = Field(None, description="The agent's question; the next message answers it.")
    question_fields: tuple[QuestionField, ...] = Field(
        (),
        description="The question's fields, if it offers choices. The message that answers contains an option's label; "
        "for several fields, a line each: `title: answer`.",
    )
    examples: tuple[str, ...] = Field(
        (), description="Messages that can be sent as they are, if an instruction was not understood."
    )
    changes: Changes | None = Field(None, description="What the pull request changes.")
    pull_request: PullRequestDetails | None = None
    partial_work: PartialWork | None = Field(
        None, description="The work of a failed instruction; a POST to the job's /discard throws it away."
    )
    revision: str | None = Field(None, description="The commit id of the job's branch.")
    usage: Usage | None = Field(None, description="Its use of its model so far, if that is counted.")


def _one_line(value: str) -> str:
    """A name may contain anything, but it must not look like more than a name."""
    return " ".join("".join(c if c.isprintable() else " " for c in without_misleading(value)).split())


_Line = Annotated[str, Field(strict=True), BeforeValidator(lambda v: _one_line(v) if isinstance(v, str) else v)]


class Requester(ApiModel):
    """Who sent the request, according to the client."""

    name: _Line = Field(min_length=1, max_length=200)
    id: _Line | None = Field(None, max_length=200, description="The person's id in the system of the client.")
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
    """Returns a media type such as `image/png` in lowercase; None for anything else."""
    kind = value.partition(";")[0].strip().lower() if isinstance(value, str) else ""
    return kind if _MEDIA_TYPE.fullmatch(kind) else None


class AttachedFile(ApiModel):
    """A file that comes with a prompt; it must have been uploaded before."""

    id: str = Field(strict=True, pattern=r"^[0-9a-f]{64}$", description="The id in the response to the upload.")
    name: _Line = Field(min_length=1, max_length=200, description="Its name, such as diagram.png.")
    mimetype: Annotated[str | None, BeforeValidator(media_type)] = Field(
        None, description="Its media type, such as image/png; by default that of the upload."
    )


class UploadedFile(ApiModel):
    """An uploaded file, which prompts can name."""

    id: str = Field(description="The SHA-256 of its bytes, in hexadecimal digits.")


class PromptBody(ApiModel):
    """The body of both POST operations. Unknown fields are ignored."""

    prompt: str = Field(strict=True, min_length=1, description="What the agent is to do.")
    instruction: str | None = Field(
        None,
        strict=True,
        description="The part of the prompt that its writer wants done, where the rest is context, such as a "
        "conversation; by default all of it. An Idempotency-Key ignores it.",
    )
    files: tuple[AttachedFile, ...] = Field((), max_length=MOST_FILES, description="Files that come with it.")
    requested_by: Requester | None = Field(
        None, description="Who asked: named in the commit and in the pull request. An Idempotency-Key ignores it."
    )

    @field_validator("prompt")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("it is empty")
        if "\0" in value:
            raise ValueError("it holds a NUL character")
        return value

    @field_validator("instruction")
    @classmethod
    def _is_in_the_prompt(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and value not in info.data.get("prompt", value):
            raise ValueError("it is no part of the prompt")
        return value


class CancelBody(ApiModel):
    """The optional body of a cancellation. Unknown fields are ignored."""

    requested_by: Requester | None = Field(None, description="Who stopped it: named in the job's reason.")


class ErrorBody(ApiModel):
    """The body of every error response."""

    error: str = Field(description="For people: what is wrong, and what to do.")
