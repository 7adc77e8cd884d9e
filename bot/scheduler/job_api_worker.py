"""A worker that calls the job APIs; each project's job API is a separate component of the health."""

from dataclasses import replace
from http import HTTPStatus
from typing import TypeVar

from bot.domain.jobs.job import Problem
from bot.domain.jobs.observe import JobApiUnavailable
from bot.errors import JobApiBusy, JobApiNotAllowed, JobApiUnreachable, NotTheJobApi
from bot.jobapi.models import Job
from bot.runtime.health import ComponentStatus, Outage
from bot.scheduler.worker import Worker


def unavailable(error: JobApiUnreachable | JobApiNotAllowed) -> JobApiUnavailable:
    """Returns what a failed call of the job API means for a thread."""
    match error:
        case JobApiNotAllowed():
            return JobApiUnavailable("does not let Pagehand in", status=error.status)
        case JobApiBusy():
            limited = error.status == HTTPStatus.TOO_MANY_REQUESTS
            problem = Problem.RATE_LIMITED if limited else Problem.BUSY
            return JobApiUnavailable("asks to wait", retry_after=error.retry_after, problem=problem, words=error.words)
        case NotTheJobApi():
            return JobApiUnavailable("is not what answers", problem=Problem.FAULTY)
        case JobApiUnreachable():
            return JobApiUnavailable("cannot be reached", retry_after=error.retry_after)


def job_words(job: Job | None) -> str:
    """Returns a job's status and link, for the log."""
    return " ".join(part for part in (job.status, job.pr_link) if part) if job else "unknown"


Item = TypeVar("Item")

NOT_ALLOWED_RETRY = 60.0
"""Seconds before a request is sent again after the job API rejected our key, so that somebody can fix that."""


class JobApiWorker(Worker[Item]):
    """Distinguishes working job APIs from failing ones: an outage of one affects neither the worker nor the others.
    They are identified by the names of their projects.
    """

    def record_answer(self, project: str) -> None:
        """Records that a project's job API answers."""
        self._outage_of(project).record_success(by=self.name)

    def record_no_answer(self, project: str, reason: object, *, retry_after: float | None = None) -> None:
        """Records that a project's job API fails or cannot be reached; `retry_after`: seconds that it asks to wait."""
        self._outage_of(project).record_failure(reason, by=self.name, retry_after=retry_after)

    def record_unavailable(self, project: str, error: JobApiUnreachable | JobApiNotAllowed) -> JobApiUnavailable:
        """Records that a project's job API was not available, unless it is only busy; returns what threads are told."""
        if isinstance(error, JobApiNotAllowed):
            self.record_no_answer(project, error)
            return replace(unavailable(error), retry_after=NOT_ALLOWED_RETRY)
        if not isinstance(error, JobApiBusy):
            self.record_no_answer(project, error, retry_after=error.retry_after)
        return unavailable(error)

    def job_api_status(self, project: str) -> ComponentStatus:
        """Returns the state of a project's job API, as whichever worker sees it worst."""
        return self._outage_of(project).status(_name(project))

    def _outage_of(self, project: str) -> Outage:
        return self._settings.outage_of(_name(project))


def _name(project: str) -> str:
    return f"job API of {project}"
