"""What the job API says and hears: the shapes of its specification."""

from datetime import datetime
from enum import StrEnum

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_serializer, field_validator
from pydantic.alias_generators import to_camel


class Status(StrEnum):
    """The four states of a job."""

    ACTIVE = "active"
    COMPLETED = "completed"
    ARCHIVED = "archived"
    FAILED = "failed"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)


class Source(_Model):
    """The repository a job works on."""

    repository: str = Field(description="Repository the job works on.")
    ref: str = Field(description="Branch of that repository the job starts from.")


class AgentJob(_Model):
    """A job as clients see it."""

    id: str = Field(description="Unique identifier of the agent job.")
    status: Status = Field(description="Current status of the job.")
    source: Source
    model: str = Field(description="What edits: a model, a program or `builtin`.")
    pr_link: str | None = Field(description="The pull request; null while active or if no files changed.")
    created_at: AwareDatetime = Field(description="When the job was created, in UTC.")
    archived_at: AwareDatetime | None = Field(description="When the job was archived, in UTC.")

    @field_serializer("created_at", "archived_at")
    def _as_iso(self, value: datetime | None) -> str | None:
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z") if value else None


class PromptBody(_Model):
    """The body of both POST operations. Unknown fields are ignored."""

    prompt: str = Field(strict=True, min_length=1, description="What the agent is to do.")

    @field_validator("prompt")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("it is empty")
        if "\0" in value:
            raise ValueError("it holds a NUL character")
        return value


class ErrorBody(_Model):
    """The body of every refusal."""

    error: str = Field(description="What is wrong and what to do, for people.")
