"""A job API that counts its calls."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from bot.app.metrics.counts import Counts
from bot.errors import JobApiError
from bot.jobapi.models import Job, PromptCall, PromptFile, Requester, SeenJob
from bot.ports.job_api import JobApi


class MeasuredJobApi:
    """A job API that counts its calls (ports.JobApi)."""

    def __init__(self, job_api: JobApi, counts: Counts) -> None:
        self._job_api = job_api
        self._counts = counts

    async def create(self, project: str, call: PromptCall) -> Job:
        """See JobApi."""
        with self._measured("create"):
            return await self._job_api.create(project, call)

    async def send_message(self, project: str, job_id: str, call: PromptCall) -> Job:
        """See JobApi."""
        with self._measured("message"):
            return await self._job_api.send_message(project, job_id, call)

    async def get(self, project: str, job_id: str) -> Job:
        """See JobApi."""
        with self._measured("get"):
            return await self._job_api.get(project, job_id)

    async def look(self, project: str, job_id: str, *, unless: bytes = b"") -> SeenJob | None:
        """See JobApi. Each is a poll."""
        try:
            with self._measured("get"):
                seen = await self._job_api.look(project, job_id, unless=unless)
        except JobApiError:
            self._counts.polled("failed")
            raise
        self._counts.polled("unchanged" if seen is None else "changed")
        return seen

    def can_cancel(self, project: str) -> bool:
        """See JobApi."""
        return self._job_api.can_cancel(project)

    async def cancel(
        self, project: str, job_id: str, *, idempotency_key: str, requester: Requester | None = None
    ) -> Job:
        """See JobApi."""
        with self._measured("cancel"):
            return await self._job_api.cancel(project, job_id, idempotency_key=idempotency_key, requester=requester)

    async def discard(self, project: str, job_id: str, *, idempotency_key: str) -> Job:
        """See JobApi."""
        with self._measured("discard"):
            return await self._job_api.discard(project, job_id, idempotency_key=idempotency_key)

    def takes_files(self, project: str) -> bool:
        """See JobApi."""
        return self._job_api.takes_files(project)

    async def upload(self, project: str, content: bytes, *, name: str, mimetype: str) -> PromptFile:
        """See JobApi."""
        with self._measured("upload"):
            return await self._job_api.upload(project, content, name=name, mimetype=mimetype)

    @contextmanager
    def _measured(self, operation: str) -> Iterator[None]:
        began = time.perf_counter()
        ended_with: BaseException | None = None
        try:
            yield
        except BaseException as error:
            ended_with = error
            raise
        finally:
            self._counts.job_api_called(operation, ended_with, time.perf_counter() - began)
