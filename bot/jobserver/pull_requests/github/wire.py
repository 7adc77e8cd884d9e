"""What GitHub answers, as far as it is read here. Source: GitHub's REST API documentation, version 2022-11-28."""

from typing import Any, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError

from bot.jobserver.models import PullRequestState
from bot.jobserver.pull_requests.github.errors import UncertainError


class _Payload(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Head(_Payload):
    """The branch a pull request comes from."""

    ref: str
    sha: str = Field(pattern=r"^[0-9a-f]{40,64}$")


class PullRequestPayload(_Payload):
    """A pull request, in a list or by itself."""

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

    full_name: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    clone_url: str
    default_branch: str = "main"
    archived: bool = False


class InstallationPayload(_Payload):
    """Where a GitHub App is installed."""

    id: int


class InstallationTokenPayload(_Payload):
    """A token of an installation; GitHub makes them for an hour."""

    token: SecretStr
    expires_at: AwareDatetime


class CheckOutput(_Payload):
    """What a check run says."""

    title: str | None = None


class CheckRun(_Payload):
    """A check of a commit, by an App such as GitHub Actions."""

    name: str
    status: str
    conclusion: str | None = None
    output: CheckOutput = CheckOutput()


class CheckRuns(_Payload):
    """The newest check runs of a commit."""

    check_runs: tuple[CheckRun, ...]


class CommitStatus(_Payload):
    """A check of a commit, in the older form."""

    context: str
    state: str
    description: str | None = None


class CombinedStatus(_Payload):
    """The newest status of each context."""

    statuses: tuple[CommitStatus, ...]


T = TypeVar("T")


def parse(kind: type[T], answer: Any) -> T:
    """Returns an answer as the kind it ought to be.

    Raises:
        UncertainError: it is not; which says nothing about whether the call was carried out.
    """
    try:
        return TypeAdapter(kind).validate_python(answer)
    except ValidationError:
        raise UncertainError("GitHub's answer makes no sense; is the address of its API right?") from None
