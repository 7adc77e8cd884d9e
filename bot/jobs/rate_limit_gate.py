"""Keeps calls back from projects that the job API asked to leave alone for a while."""

import asyncio

from bot.errors import JobApiBusy
from bot.jobs.http_errors import JobApiOperation


class RateLimitGate:
    """Knows until when no calls are made, by project. Creates and messages wait together, since their limit is the
    project's (the hosted API's is 100 an hour); polls, for which none is stated, wait apart, and so do cancels, which
    may be what helps.

    Args:
        default_pause: Seconds for which a project is left alone where the API names no time.
    """

    def __init__(self, *, default_pause: float) -> None:
        self._default_pause = default_pause
        self._closed: dict[tuple[str, JobApiOperation], tuple[float, JobApiBusy]] = {}

    def check(self, operation: JobApiOperation, project_id: str) -> None:
        """Raises JobApiBusy while the project is to be left alone: with the answer that asked for it, in the job API's
        own words, and the seconds that are left.
        """
        until, answer = self._closed.get(_limit(operation, project_id), (0.0, None))
        left = until - asyncio.get_running_loop().time()
        if answer is not None and left > 0:
            message = "The job API asked to leave this project alone for a while."
            raise JobApiBusy(message, words=answer.words, status=answer.status, retry_after=left)

    def close(self, operation: JobApiOperation, project_id: str, answer: JobApiBusy) -> None:
        """Keeps calls back for as long as an answer asks, counted from now; never for a shorter time than before."""
        seconds = self._default_pause if answer.retry_after is None else answer.retry_after
        limit, until = _limit(operation, project_id), asyncio.get_running_loop().time() + seconds
        if until > self._closed.get(limit, (0.0, answer))[0]:
            self._closed[limit] = (until, answer)


def _limit(operation: JobApiOperation, project_id: str) -> tuple[str, JobApiOperation]:
    """Returns the key of the limit that a call counts against."""
    together = operation is JobApiOperation.MESSAGE
    return project_id, JobApiOperation.CREATE if together else operation
