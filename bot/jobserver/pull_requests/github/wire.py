"""GitHub's answers, as far as they are used. Source: GitHub's REST API documentation, version 2022-11-28."""

from typing import Any, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, SecretStr, TypeAdapter, ValidationError

from bot.jobapi.models import PullRequestState
from bot.jobserver.pull_requests.github.api import NOT_UNDERSTOOD, UncertainError

T = TypeVar("T")


class _Payload(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Head(_Payload):
    """The branch of a pull request."""

    ref: str


class PullRequestPayload(_Payload):
    """A pull request."""

    number: int
    html_url: str
    state: str
    merged_at: str | None = None
    body: str | None = None
    head: Head

    @property
    def outcome(self) -> PullRequestState:
        if self.merged_at:
            return PullRequestState.MERGED
        return PullRequestState.OPEN if self.state == "open" else PullRequestState.CLOSED


class RepositoryPayload(_Payload):
    """A repository."""

    full_name: str
    default_branch: str = "main"
    archived: bool = False


class InstallationPayload(_Payload):
    """Where a GitHub App is installed."""

    id: int


class InstallationTokenPayload(_Payload):
    """A token of an installation; GitHub makes them for an hour."""

    token: SecretStr
    expires_at: AwareDatetime


def parse(kind: type[T], answer: Any) -> T:
    """Parses an answer.

    Raises:
        UncertainError: the answer is invalid, so the call may or may not have been carried out.
    """
    try:
        return TypeAdapter(kind).validate_python(answer)
    except ValidationError:
        raise UncertainError(NOT_UNDERSTOOD) from None
