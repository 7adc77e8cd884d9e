"""GitHub's answers, as far as they are read. Unknown values are values, and what is not usable counts as missing.

Source: GitHub's REST API documentation, version 2022-11-28, and its GraphQL schema.
"""

from contextlib import suppress
from typing import Any, TypeVar

from pydantic import ValidationError

from bot.codehosts.pull_request import CheckOutcome, Verdict
from bot.jobapi.models import Count, Hide, Line, PullRequestState, Told
from bot.runtime.untrusted_json import value_at

T = TypeVar("T", bound=Told)
MOST = 500
"""Items of a list that are read."""
_OUTCOMES = {
    "success": CheckOutcome.PASSED, "neutral": CheckOutcome.PASSED, "skipped": CheckOutcome.SKIPPED,
    "failure": CheckOutcome.FAILED, "timed_out": CheckOutcome.FAILED, "cancelled": CheckOutcome.FAILED,
    "action_required": CheckOutcome.FAILED, "startup_failure": CheckOutcome.FAILED, "error": CheckOutcome.FAILED,
    "pending": CheckOutcome.RUNNING,
}  # fmt: skip
_VERDICTS = {
    "APPROVED": Verdict.APPROVED, "CHANGES_REQUESTED": Verdict.CHANGES_REQUESTED, "DISMISSED": Verdict.DISMISSED,
}  # fmt: skip
NO_DECISIONS = frozenset({"COMMENTED", "PENDING"})


class User(Told):
    """A person or a program; null where the account is gone."""

    login: Line = "ghost"
    type: Line = ""


class Head(Told):
    """The newest commit. The fork that it came from can be gone."""

    sha: Line


class Base(Told):
    """The branch that it is for."""

    ref: Line = ""


class PullPayload(Told):
    """A pull request."""

    number: Count
    state: Line
    merged: bool | None = None
    merged_at: Line | None = None
    merged_by: User | None = None
    draft: bool | None = None
    mergeable: bool | None = None
    title: Line | None = None
    head: Head
    base: Base = Base()
    updated_at: Line | None = None

    @property
    def outcome(self) -> PullRequestState | None:
        """Its state: GitHub calls a merged one closed."""
        if self.merged or self.merged_at:
            return PullRequestState.MERGED
        return {"open": PullRequestState.OPEN, "closed": PullRequestState.CLOSED}.get(self.state)


class _Output(Told):
    title: Line | None = None


class CheckRun(Told):
    """A check by an App such as GitHub Actions, or a run of one of its workflows."""

    name: Line = "check"
    status: Line = ""
    conclusion: Line | None = None
    html_url: str | None = None
    details_url: str | None = None
    output: _Output = _Output()

    @property
    def outcome(self) -> CheckOutcome:
        """A check that is completed without a conclusion has not failed."""
        if self.status != "completed":
            return CheckOutcome.RUNNING
        return _OUTCOMES.get(self.conclusion or "", CheckOutcome.UNKNOWN)


class StatusPayload(Told):
    """A check in the older form."""

    context: Line = "check"
    state: Line = ""
    description: Line | None = None
    target_url: str | None = None

    @property
    def outcome(self) -> CheckOutcome:
        """Its outcome."""
        return _OUTCOMES.get(self.state, CheckOutcome.UNKNOWN)


class ReviewPayload(Told):
    """A review."""

    id: int
    user: User | None = None
    state: Line = ""
    commit_id: Line | None = None
    html_url: str | None = None

    @property
    def verdict(self) -> Verdict:
        """What its author decided."""
        return _VERDICTS.get(self.state, Verdict.UNKNOWN)


class CommentPayload(Told):
    """A comment on a line; `line` is null once the line has changed."""

    id: int
    pull_request_review_id: int | None = None
    path: Line | None = None
    line: Count | None = None
    body: str | None = None
    user: User | None = None


class DeploymentPayload(Told):
    """A deployment of a commit."""

    id: int
    environment: Line = "preview"


class DeploymentStatus(Told):
    """What became of a deployment."""

    state: Line = ""
    environment_url: str | None = None


class ReviewThread(Told):
    """A thread of comments on a line."""

    is_resolved: bool | None = None
    comments: Any = None

    @property
    def comment_ids(self) -> frozenset[int]:
        """The ids of its comments in the REST API."""
        nodes = value_at(self.comments, "nodes")
        return frozenset(number for node in nodes or () if isinstance(number := value_at(node, "databaseId"), int))


def each(kind: type[T], items: Any, hide: Hide) -> list[T]:
    """Reads the items of a list, without surplus ones, and without those that are not usable."""
    usable: list[T] = []
    for item in items[:MOST] if isinstance(items, list) else ():
        with suppress(ValidationError):
            usable.append(kind.model_validate(item, context=hide))
    return usable
