"""A worker that calls the job APIs: each project's is a component of the health by itself."""

from collections import defaultdict
from dataclasses import replace
from http import HTTPStatus
from typing import TypeVar

from bot.domain.jobs.job import Problem
from bot.domain.jobs.observe import JobApiUnavailable
from bot.errors import JobApiBusy, JobApiNotAllowed, JobApiUnreachable
from bot.ports.transaction import Store
from bot.runtime.health.outages import Outage
from bot.runtime.health.report import ComponentStatus
from bot.scheduler.worker import Worker, WorkerSettings


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


Item = TypeVar("Item")

NOT_ALLOWED_RETRY = 60.0
"""Seconds before a request is sent again after the job API refused our key: till somebody has put that right."""


class _OutagesByProject(defaultdict[str, Outage]):
    """An outage for each project's job API, made when it is first asked for."""

    def __init__(self, worker: str, settings: WorkerSettings) -> None:
        super().__init__()
        self._worker = worker
        self._settings = settings

    def __missing__(self, project: str) -> Outage:
        name, settings = f"{self._worker} ({project})", self._settings
        self[project] = outage = Outage(name, settings.clock.monotonic, recovery=settings.recovery)
        return outage


class JobApiWorker(Worker[Item]):
    """Tells the job APIs that work from those that do not: one that is away is no fault of the worker, nor of others.

    Projects go by their names.
    """

    def __init__(self, store: Store, settings: WorkerSettings, *, concurrency: int) -> None:
        super().__init__(store, settings, concurrency=concurrency)
        self._job_apis = _OutagesByProject(type(self).__name__, settings)

    def record_answer(self, project: str) -> None:
        """Notes that a project's job API gives answers."""
        self._job_apis[project].record_success()

    def record_no_answer(
        self, project: str, reason: object, *, only_this_item: bool = False, retry_after: float | None = None
    ) -> None:
        """Notes that a project's job API does not do what it is there for; see `record_failure`."""
        self._job_apis[project].record_failure(reason, quiet=only_this_item, retry_after=retry_after)

    def record_unavailable(self, project: str, error: JobApiUnreachable | JobApiNotAllowed) -> JobApiUnavailable:
        """Notes that a project's job API could not be asked, unless it is only busy; returns what a thread is told."""
        if isinstance(error, JobApiNotAllowed):
            self.record_no_answer(project, error)
            return replace(unavailable(error), retry_after=NOT_ALLOWED_RETRY)
        if not isinstance(error, JobApiBusy):
            self.record_no_answer(project, error, retry_after=error.retry_after)
        return unavailable(error)

    def job_api_status(self, project: str) -> ComponentStatus:
        """Returns whether a project's job API does what this worker asks of it."""
        outage = self._job_apis[project]
        return ComponentStatus(f"job API of {project}", outage.seconds(), str(outage.reason))

    def end_outages(self) -> None:
        """Forgets what is over."""
        super().end_outages()
        for outage in self._job_apis.values():
            outage.end_if_over()
