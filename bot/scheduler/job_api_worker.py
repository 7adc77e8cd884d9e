"""A worker that calls the job APIs; each project's job API is a separate component of the health."""

from collections import defaultdict
from dataclasses import replace
from http import HTTPStatus
from typing import TypeVar

from bot.domain.jobs.job import Job, Problem
from bot.domain.jobs.observe import JobApiUnavailable
from bot.errors import JobApiBusy, JobApiNotAllowed, JobApiUnreachable, NotTheJobApi
from bot.runtime.health.outages import Outage
from bot.runtime.health.report import ComponentStatus
from bot.scheduler.worker import Worker, WorkerSettings
from bot.store.transaction import Store


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


class _OutagesByProject(defaultdict[str, Outage]):
    """An outage for each project's job API, made on demand."""

    def __init__(self, settings: WorkerSettings) -> None:
        super().__init__()
        self._settings = settings

    def __missing__(self, project: str) -> Outage:
        self[project] = outage = self._settings.outage_of(_name(project))
        return outage


def _name(project: str) -> str:
    return f"job API of {project}"


class JobApiWorker(Worker[Item]):
    """Distinguishes working job APIs from failing ones: an outage of one affects neither the worker nor the others.
    They are identified by the names of their projects.
    """

    def __init__(self, store: Store, settings: WorkerSettings, *, concurrency: int) -> None:
        super().__init__(store, settings, concurrency=concurrency)
        self._job_apis = _OutagesByProject(settings)

    def record_answer(self, project: str) -> None:
        """Records that a project's job API answers."""
        self._job_apis[project].record_success()

    def record_no_answer(self, project: str, reason: object, *, retry_after: float | None = None) -> None:
        """Records that a project's job API fails or cannot be reached; `retry_after`: seconds that it asks to wait."""
        self._job_apis[project].record_failure(reason, retry_after=retry_after)

    def record_unavailable(self, project: str, error: JobApiUnreachable | JobApiNotAllowed) -> JobApiUnavailable:
        """Records that a project's job API was not available, unless it is only busy; returns what threads are told."""
        if isinstance(error, JobApiNotAllowed):
            self.record_no_answer(project, error)
            return replace(unavailable(error), retry_after=NOT_ALLOWED_RETRY)
        if not isinstance(error, JobApiBusy):
            self.record_no_answer(project, error, retry_after=error.retry_after)
        return unavailable(error)

    def job_api_status(self, project: str) -> ComponentStatus:
        """Returns the state of a project's job API, as this worker sees it."""
        return self._job_apis[project].status(_name(project))

    def end_outages(self) -> None:
        """Ends outages that are over."""
        super().end_outages()
        for outage in self._job_apis.values():
            outage.end_if_over()
