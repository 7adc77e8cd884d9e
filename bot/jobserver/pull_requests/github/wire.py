"""GitHub's answers, as far as they are used. Source: GitHub's REST API documentation, version 2022-11-28."""

from typing import Any, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, SecretStr, TypeAdapter, ValidationError

from bot.codehosts.github_payloads import Head, PullPayload
from bot.jobapi.models import PullRequestState
from bot.jobserver.pull_requests.github.api import NOT_UNDERSTOOD, UncertainError
from bot.jobserver.pull_requests.interface import OpenedPullRequest

T = TypeVar("T")


class _Payload(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class Branch(Head):
    """The branch of a pull request."""

    ref: str


class PullRequestPayload(PullPayload):
    """A pull request, with what is needed to change it."""

    html_url: str
    body: str | None = None
    head: Branch

    def opened(self) -> OpenedPullRequest:
        state = self.outcome or PullRequestState.CLOSED
        return OpenedPullRequest(self.number, self.html_url, self.head.ref, state)


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
