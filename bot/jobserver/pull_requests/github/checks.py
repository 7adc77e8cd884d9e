"""GitHub's own checks of a commit, in few words. Pure."""

from collections.abc import Iterable

from bot.jobserver.models import CheckResult, CheckStatus
from bot.jobserver.pull_requests.github.reasons import one_line
from bot.jobserver.pull_requests.github.wire import CheckRun, CommitStatus

MOST_CHECKS = 30
_ORDER = (CheckStatus.FAILED, CheckStatus.PASSED, CheckStatus.SKIPPED)
_CONCLUSIONS = {
    "success": CheckStatus.PASSED, "neutral": CheckStatus.PASSED, "skipped": CheckStatus.SKIPPED,
    "failure": CheckStatus.FAILED, "timed_out": CheckStatus.FAILED, "cancelled": CheckStatus.FAILED,
    "action_required": CheckStatus.FAILED, "startup_failure": CheckStatus.FAILED,
}  # fmt: skip
_STATES = {"success": CheckStatus.PASSED, "failure": CheckStatus.FAILED, "error": CheckStatus.FAILED}


def check_results(runs: Iterable[CheckRun], statuses: Iterable[CommitStatus]) -> tuple[CheckResult, ...]:
    """Returns at most 30 results, the failed ones first. What has not ended says nothing yet, and is left out."""
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
