"""The job API's models, for its client and its server: the specification's, and what ours adds to it.

Values are written exactly. What a job API tells is read leniently if the validation's context is a function that masks
secrets in a text: a field that is not usable counts as missing, texts are cleaned, masked and shortened, and surplus or
unusable items are left out. All texts of details come from agents or programs: do not trust them.
"""

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeInt,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticUseDefault

from bot.runtime.text import printable_line, printable_text, whole_words, without_misleading

MOST_FILES = 20
"""Files that can come with one prompt."""
MAX_ID = 500
MAX_LINK = 3000
"""The longest link that Slack accepts on a button, in characters."""
MAX_SUMMARY = 40_000
"""Characters of an answer that are read."""
MAX_WORDS = 2_000
"""Characters of a reason or a question that are read."""
MAX_LINE = 200
MAX_STEPS = 20
MAX_CHANGED_FILES = 50
MAX_PAGES_READ = 20
MAX_CHECKS, MAX_PROBLEMS = 20, 1_000
MAX_EXAMPLES = 20
MAX_PICTURES = 20
PICTURE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif"})
"""The pictures that Slack shows in a message, and that cannot contain scripts."""
LARGEST_PICTURE = 5_000_000
"""Bytes."""
MAX_COUNT = 10**9
_MOST_OF_A_LINE = 10_000
"""Characters of which a line is made: masking more takes its time, and is thrown away."""
LOST = "\ufffd"
"""Stands for what is no character of UTF-8."""

Hide = Callable[[str], str]
"""Masks secrets in a text."""
_URL_CREDENTIALS = re.compile(r"^(https?://)[^/]*@", re.IGNORECASE)
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,48}/[a-z0-9][a-z0-9!#$&^_.+-]{0,48}")


def _read_by(read: Callable[[str, Hide], str | None]) -> BeforeValidator:
    """Reads a text. One of which nothing is left counts as missing."""

    def validate(value: Any, info: ValidationInfo) -> Any:
        if info.context is None:
            return value
        return (read(value, info.context) or None) if isinstance(value, str) else None

    return BeforeValidator(validate)


def _line(limit: int = MAX_LINE) -> BeforeValidator:
    return _read_by(lambda text, hide: printable_line(hide(whole_words(text, _MOST_OF_A_LINE))[: 8 * limit], limit))


def _words(limit: int = MAX_WORDS) -> BeforeValidator:
    return _read_by(lambda text, hide: printable_text(hide(text), limit))


def _whole_line(text: str, hide: Hide) -> str | None:
    """A label identifies an answer, so one that would be displayed differently counts as missing."""
    return text if printable_line(hide(text), MAX_LINE) == text else None


def _link(text: str, hide: Hide) -> str | None:
    """A shortened or incomplete link would lead elsewhere, so it counts as missing."""
    text = text.strip() if len(text) <= MAX_LINK else ""
    return hide(text) if LOST not in text and printable_line(text, MAX_LINK) == text else None


def _repository(text: str, hide: Hide) -> str:
    """A URL that git can push to may contain a token, which must not be shown in a channel."""
    return printable_line(hide(_URL_CREDENTIALS.sub(r"\1", text)), 500)


def _id(value: Any) -> str:
    """Returns an id unchanged, because it addresses the job. Raises ValueError if no URL path can contain it."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    text = str(value) if whole or (isinstance(value, float) and math.isfinite(value)) else value
    if not isinstance(text, str) or not text.strip() or not text.isprintable() or LOST in text or len(text) > MAX_ID:
        raise ValueError("not an id")
    if text in {".", ".."}:
        raise ValueError("a path segment with a meaning of its own")
    return text


def media_type(value: object) -> str | None:
    """Returns a media type such as `image/png` in lowercase; None for anything else."""
    kind = value.partition(";")[0].strip().lower() if isinstance(value, str) else ""
    return kind if _MEDIA_TYPE.fullmatch(kind) else None


def usable(most: int) -> WrapValidator:
    """Reads a list without its surplus items, and without unusable ones."""

    def validate(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        if info.context is None:
            return handler(value)
        items = list(value[:most]) if isinstance(value, list | tuple) else []
        try:
            return handler(items)
        except ValidationError:
            usable: list[Any] = []
            for item in items:
                with suppress(ValidationError):
                    usable += handler([item])
            return tuple(usable)

    return WrapValidator(validate)


def _whole_number(value: Any, info: ValidationInfo) -> Any:
    """Takes neither `true` nor `"3"` for a number, nor a number that counts nothing."""
    return value if info.context is None or (type(value) is int and value <= MAX_COUNT) else None


Line = Annotated[str, _line()]
Words = Annotated[str, _words()]
Link = Annotated[str, _read_by(_link)]
Count = Annotated[NonNegativeInt, BeforeValidator(_whole_number)]


def _is_none(value: Any) -> bool:
    return value is None


class ApiModel(BaseModel):
    """Base of all requests and responses: field names are in camelCase, as in the specification."""

    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, populate_by_name=True, hide_input_in_errors=True, defer_build=True
    )


class Told(ApiModel):
    """What a job API tells."""

    @field_validator("*", mode="wrap")
    @classmethod
    def _usable_or_missing(cls, value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        try:
            return handler(value)
        except ValidationError:
            if info.context is None or cls.model_fields[str(info.field_name)].is_required():
                raise
        raise PydanticUseDefault


class Status(StrEnum):
    """The four states of a job."""

    ACTIVE = "active"
    COMPLETED = "completed"
    ARCHIVED = "archived"
    FAILED = "failed"


TERMINAL = frozenset({Status.COMPLETED, Status.ARCHIVED, Status.FAILED})
"""The statuses that end polling (specification, part 3). Any other, known or not, means work in progress."""


class Source(Told):
    """The repository a job works on."""

    repository: Annotated[str | None, _read_by(_repository)] = Field(None, description="Repository the job works on.")
    ref: Annotated[str | None, _line(300)] = Field(None, description="Branch of that repository the job starts from.")


class StepStatus(StrEnum):
    """The status of a plan's step, as in the Agent Client Protocol."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class PlanStep(Told):
    """One step of the agent's plan."""

    title: Line
    status: StepStatus = StepStatus.PENDING


class ChangeKind(StrEnum):
    """How a file was changed."""

    ADDED = "added"
    CHANGED = "changed"
    RENAMED = "renamed"
    DELETED = "deleted"


class FileChange(Told):
    """A changed file of the pull request."""

    path: Line
    kind: ChangeKind = ChangeKind.CHANGED
    added: Count | None = Field(None, description="Lines added; null for a file that is not text.")
    removed: Count | None = Field(None, description="Lines removed; null for a file that is not text.")
    title: Annotated[str | None, _line()] = Field(
        None, description="The page's title, where the file is a page that has one.", exclude_if=_is_none
    )


class Changes(Told):
    """All changes of the pull request. `files` may be truncated; the three totals never are."""

    files: Annotated[tuple[FileChange, ...], usable(MAX_CHANGED_FILES)] = ()
    file_count: Count = Field(0, validate_default=True)
    added: Count = Field(0, description="Lines added in all text files.")
    removed: Count = Field(0, description="Lines removed in all text files.")

    @field_validator("file_count")
    @classmethod
    def _counts_all(cls, value: int, info: ValidationInfo) -> int:
        return max(value, len(info.data.get("files", ())))


class PullRequestState(StrEnum):
    """The state of a job's pull request, or `pending` if the branch is pushed but not yet proposed."""

    PENDING = "pending"
    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


class CheckStatus(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class CheckResult(Told):
    """The result of a check, with the faults that the change introduced, a line each."""

    name: Line = "check"
    status: CheckStatus = CheckStatus.SKIPPED
    problems: Annotated[tuple[Line, ...], usable(MAX_PROBLEMS)] = ()


class PullRequestDetails(Told):
    """The job's pull request, as far as its host reports it."""

    number: int | None = Field(None, description="Null while it is pending.")
    state: PullRequestState | None = Field(
        None, description="`pending`: the change is pushed, and the server keeps trying to open the pull request."
    )
    reason: Annotated[str | None, _words()] = Field(
        None, description="Why it is pending, or what it lacks, such as labels."
    )
    checks: Annotated[tuple[CheckResult, ...], usable(MAX_CHECKS)] = Field(
        (), description="The job server's own checks of the change."
    )


class Picture(Told):
    """A picture that was added or changed, and that a changed page shows."""

    id: Line = Field(description="The SHA-256 of its bytes, in hexadecimal digits; GET …/picture/{id} sends them.")
    path: Line
    alt: Annotated[str | None, _line()] = Field(None, description="What the page says of it.")
    mimetype: Annotated[str | None, BeforeValidator(media_type)] = Field(None, description="By its first bytes.")
    size: Count | None = Field(None, description="In bytes.")
    link: Annotated[str | None, _read_by(_link)] = Field(None, description="Where people see it.")


class PartialWork(Told):
    """The work of a failed instruction: it is kept outside the pull request, and the next message continues from it."""

    files: Count = Field(description="How many files it changes.")


class Cost(Told):
    """The cost in money, as far as an agent reports it."""

    amount: float
    currency: str = Field(description="An ISO 4217 code, such as USD.")


class Usage(Told):
    """A job's use of its model, over all its instructions."""

    tokens_sent: int = Field(description="Tokens sent to the model, including those read from its cache.")
    tokens_answered: int = Field(description="Tokens in its answers.")
    cost: Cost | None = Field(None, description="Null if no agent reported it.")


class Mode(StrEnum):
    """What an instruction is for: to change pages, to propose a change, or to answer a question."""

    EDIT = "edit"
    PLAN = "plan"
    ASK = "ask"


class ProposalState(StrEnum):
    """What became of a proposed plan."""

    PROPOSED = "proposed"
    ACCEPTED = "accepted"
    SUPERSEDED = "superseded"


class ProposedPage(Told):
    """A page that a plan would change."""

    path: Line
    reason: Line | None = None


class Proposal(Told):
    """A plan that waits for a yes, or did: a message with its id accepts it."""

    id: Line
    state: ProposalState
    text: Annotated[str, _words(MAX_SUMMARY)] = Field(
        description="What will be done, why, and what will not, in Markdown."
    )
    pages: Annotated[tuple[ProposedPage, ...], usable(MAX_CHANGED_FILES)] = ()
    accepted_by: Line | None = Field(None, description="The name of whoever accepted it.")


class FieldKind(StrEnum):
    """What kind of answer a field takes."""

    CHOICE = "choice"
    CHOICES = "choices"
    YES_OR_NO = "yes_or_no"
    NUMBER = "number"
    TEXT = "text"


class QuestionOption(ApiModel):
    """One of the answers on offer."""

    label: Annotated[str, _read_by(_whole_line)] = Field(
        description="The text of the message that chooses this option."
    )
    description: str | None = None


class QuestionField(ApiModel):
    """One part of a question. If any is not usable, the whole form is not: it could not be submitted."""

    title: Annotated[str, _read_by(_whole_line)]
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


class JobDetails(Told):
    """A job's details beyond the specification. Each can be missing, and then nothing is claimed about it."""

    summary: Annotated[str | None, _words(MAX_SUMMARY)] = Field(
        None, description="The agent's answer to the newest instruction, in Markdown."
    )
    reason: Annotated[str | None, _words()] = Field(
        None, description="Why it failed, or why nothing was changed, or who stopped it."
    )
    plan: Annotated[tuple[PlanStep, ...], usable(MAX_STEPS)] = Field(
        (), description="The agent's plan and its progress."
    )
    activity: Annotated[str | None, _line()] = Field(
        None, description="What the agent is doing right now, in a few words."
    )
    question: Annotated[str | None, _words()] = Field(
        None, description="The agent's question; the next message answers it."
    )
    question_fields: tuple[QuestionField, ...] = Field(
        (),
        description="The question's fields, if it offers choices. The message that answers contains an option's label; "
        "for several fields, a line each: `title: answer`.",
    )
    examples: Annotated[tuple[Line, ...], usable(MAX_EXAMPLES)] = Field(
        (), description="Messages that can be sent as they are, if an instruction was not understood."
    )
    changes: Changes | None = Field(None, description="What the pull request changes.")
    pull_request: PullRequestDetails | None = None
    pictures: Annotated[tuple[Picture, ...], usable(MAX_PICTURES)] = Field(
        (), description="The pictures that the pull request adds or changes on its pages, as of `revision`."
    )
    partial_work: PartialWork | None = Field(
        None, description="The work of a failed instruction; a POST to the job's /discard throws it away."
    )
    revision: Annotated[str | None, _line()] = Field(None, description="The commit id of the job's branch.")
    usage: Usage | None = Field(None, description="Its use of its model so far, if that is counted.")
    mode: Mode | None = Field(None, description="What the newest instruction is for; null: to change pages.")
    proposal: Proposal | None = Field(None, description="The newest plan, if its job was asked for one.")
    pages_read: Annotated[tuple[Line, ...], usable(MAX_PAGES_READ)] = Field(
        (), description="The pages that an answer is based on, as far as they are known."
    )

    @property
    def partial_files(self) -> int:
        """The number of files with work that was kept after a failure."""
        return self.partial_work.files if self.partial_work else 0


@dataclass(frozen=True)
class Job:
    """An Agent job as its client last saw it (specification, part 2). All but id and status are optional.

    `details` belong to a single poll; they are not stored with a thread's job.
    """

    id: str
    status: str
    pr_link: str | None = None
    repository: str | None = None
    ref: str | None = None
    model: str | None = None
    created_at: str | None = None
    archived_at: str | None = None
    details: JobDetails | None = None

    @property
    def ended(self) -> bool:
        """Whether the job has ended, so that polling may stop."""
        return self.status in TERMINAL


class AgentJob(Told):
    """A job as clients see it. Only id and status are required; a status can be one that only its server knows."""

    id: Annotated[str, BeforeValidator(_id)] = Field(description="Unique identifier of the agent job.")
    status: Annotated[Status | SkipJsonSchema[str], Field(union_mode="left_to_right"), _line(100)] = Field(
        description="Current status of the job."
    )
    source: Source = Source()
    model: Annotated[str | None, _line()] = Field(None, description="What edits: a model, a program or `builtin`.")
    pr_link: Annotated[str | None, _read_by(_link)] = Field(
        None, description="The pull request; null while active or if no files changed."
    )
    created_at: Annotated[str | None, _line(64)] = Field(
        None, description="When the job was created, in UTC.", json_schema_extra={"format": "date-time"}
    )
    archived_at: Annotated[str | None, _line(64)] = Field(
        None, description="When the job was archived, in UTC.", json_schema_extra={"format": "date-time"}
    )
    details: JobDetails | None = Field(
        None,
        description="What is known beyond the specification; can be ignored.",
        exclude_if=_is_none,
    )

    def as_job(self) -> Job:
        """Returns the job as its client keeps it."""
        return Job(
            self.id,
            str(self.status),
            self.pr_link,
            self.source.repository,
            self.source.ref,
            self.model,
            self.created_at,
            self.archived_at,
            self.details,
        )


def _one_line(value: Any) -> Any:
    """A name may contain anything, but it must not look like more than a name."""
    if not isinstance(value, str):
        return value
    return " ".join("".join(c if c.isprintable() else " " for c in without_misleading(value)).split())


_Name = Annotated[str, Field(strict=True), BeforeValidator(_one_line)]


def _web_address(value: str) -> str:
    if not (value.startswith(("https://", "http://")) and len(value.split()) == 1):
        raise ValueError("it is not an address that begins with https:// or http://")
    return value


@dataclass(frozen=True)
class Requester:
    """Who sent the request, according to the client."""

    name: Annotated[_Name, Field(min_length=1, max_length=200)]
    id: Annotated[_Name | None, Field(max_length=200, description="The person's id in the system of the client.")] = (
        None
    )
    url: Annotated[
        Annotated[_Name, AfterValidator(_web_address)] | None,
        Field(max_length=3000, description="Where the request was made, such as a Slack thread: http or https."),
    ] = None


@dataclass(frozen=True)
class PromptFile:
    """A file that comes with a prompt, as its client knows it. A job API can have ids of any form."""

    id: str
    name: str
    mimetype: str | None = None


@dataclass(frozen=True)
class AttachedFile(PromptFile):
    """A file that comes with a prompt; it must have been uploaded before."""

    id: Annotated[
        str, Field(strict=True, pattern=r"^[0-9a-f]{64}$", description="The id in the response to the upload.")
    ]
    name: Annotated[_Name, Field(min_length=1, max_length=200, description="Its name, such as diagram.png.")]
    mimetype: Annotated[
        str | None,
        BeforeValidator(media_type),
        Field(description="Its media type, such as image/png; by default that of the upload."),
    ] = None


class UploadedFile(ApiModel):
    """An uploaded file, which prompts can name."""

    id: Annotated[str, AfterValidator(_id)] = Field(description="The SHA-256 of its bytes, in hexadecimal digits.")


class PromptBody(ApiModel):
    """The body of both POST operations. Only `prompt` is in the specification. Unknown fields are ignored."""

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
    mode: Mode = Field(Mode.EDIT, description="In `plan` and `ask`, nothing is changed.")
    model: str | None = Field(None, strict=True, max_length=MAX_LINE, description="By default the project's.")
    effort: str | None = Field(None, strict=True, max_length=MAX_LINE, description="By default the project's.")
    proposal: str | None = Field(
        None,
        strict=True,
        min_length=1,
        max_length=MAX_LINE,
        description="For a message: the id of the plan that it accepts, and that is carried out in the mode `edit`.",
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

    @field_validator("proposal")
    @classmethod
    def _is_carried_out(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("mode") is not Mode.EDIT:
            raise ValueError("a plan is carried out in the mode edit")
        return value


class CancelBody(ApiModel):
    """The optional body of a cancellation. Unknown fields are ignored."""

    requested_by: Requester | None = Field(None, description="Who stopped it: named in the job's reason.")


class ErrorBody(ApiModel):
    """The body of every error response."""

    error: str = Field(description="For people: what is wrong, and what to do.")


@dataclass(frozen=True)
class PromptCall:
    """The call that creates a job, or sends a follow-up to one.

    `instruction` is the part of the prompt that its writer wants done, where the rest is context. `proposal` is the id
    of the plan that it accepts. All but the prompt are only for servers known to support them. A repeated call keeps
    its `idempotency_key`.
    """

    prompt: str
    idempotency_key: str
    requester: Requester | None = None
    files: Sequence[PromptFile] = ()
    instruction: str | None = None
    mode: Mode = Mode.EDIT
    model: str = ""
    effort: str = ""
    proposal: str = ""


@dataclass(frozen=True)
class SeenJob:
    """A job as one poll saw it. Two polls with the same `fingerprint` saw the same job."""

    job: Job
    fingerprint: bytes
