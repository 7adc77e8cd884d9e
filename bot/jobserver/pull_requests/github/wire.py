"""GitHub's answers, as far as they are used. Source: GitHub's REST API documentation, version 2022-11-28."""

from collections.abc import Iterable
from typing import Any, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError

from bot.jobapi.models import CheckResult, CheckStatus, PullRequestState
from bot.jobserver.pull_requests.github.api import NOT_UNDERSTOOD, UncertainError
from bot.jobserver.text import one_line

T = TypeVar("T")
MOST_CHECKS = 30
_ORDER = (CheckStatus.FAILED, CheckStatus.PASSED, CheckStatus.SKIPPED)
_CONCLUSIONS = {
    "success": CheckStatus.PASSED, "neutral": CheckStatus.PASSED, "skipped": CheckStatus.SKIPPED,
    "failure": CheckStatus.FAILED, "timed_out": CheckStatus.FAILED, "cancelled": CheckStatus.FAILED,
    "action_required": CheckStatus.FAILED, "startup_failure": CheckStatus.FAILED,
}  # fmt: skip
_STATES = {"success": CheckStatus.PASSED, "failure": CheckStatus.FAILED, "error": CheckStatus.FAILED}


class _Payload(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Head(_Payload):
    """The branch of a pull request."""

    ref: str
    sha: str = Field(pattern=r"^[0-9a-f]{40,64}$")


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


class CheckOutput(_Payload):
    """The message of a check run."""

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


def parse(kind: type[T], answer: Any) -> T:
    """Parses an answer.

    Raises:
        UncertainError: the answer is invalid, so the call may or may not have been carried out.
    """
    try:
        return TypeAdapter(kind).validate_python(answer)
    except ValidationError:
        raise UncertainError(NOT_UNDERSTOOD) from None


def check_results(runs: Iterable[CheckRun], statuses: Iterable[CommitStatus]) -> tuple[CheckResult, ...]:
    """Returns at most 30 results of finished checks, the failed ones first."""
    results = [
        result
        for result in (
            *(_result(run.name, _CONCLUSIONS.get(run.conclusion or ""), run.output.title) for run in runs),
            *(_result(status.context, _STATES.get(status.state), status.description) for status in statuses),
        )
        if result is not None
    ]
    return tuple(sorted(results, key=lambda result: _ORDER.index(result.status))[:MOST_CHECKS])


def _result(name: str, status: CheckStatus | None, words: str | None) -> CheckResult | None:
    if status is None:
        return None
    problems = (one_line(words),) if status is CheckStatus.FAILED and words and words.strip() else ()
    return CheckResult(name=one_line(name), status=status, problems=problems)
