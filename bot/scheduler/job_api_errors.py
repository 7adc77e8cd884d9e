"""The job API's errors in the domain's words."""

from http import HTTPStatus

from bot.domain.jobs.job import Problem
from bot.domain.jobs.observe import JobApiUnavailable
from bot.errors import JobApiBusy, JobApiNotAllowed, JobApiUnreachable


def unavailable(error: JobApiUnreachable | JobApiNotAllowed) -> JobApiUnavailable:
    """Returns what it means for a thread that the job API could not be asked."""
    match error:
        case JobApiNotAllowed():
            return JobApiUnavailable("does not let Pagehand in", status=error.status)
        case JobApiBusy():
            limited = error.status == HTTPStatus.TOO_MANY_REQUESTS
            problem = Problem.RATE_LIMITED if limited else Problem.BUSY
            return JobApiUnavailable("asks to wait", retry_after=error.retry_after, problem=problem, words=error.words)
        case JobApiUnreachable():
            return JobApiUnavailable("cannot be reached", retry_after=error.retry_after)
