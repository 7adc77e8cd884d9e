"""Several projects, each with its own job API: address, key, connections and rate limits."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from bot.errors import NoSuchProject
from bot.jobapi.client import HttpJobApi
from bot.jobapi.models import Job, PromptCall, PromptFile, Requester, SeenJob


@dataclass(frozen=True)
class ProjectJobApi:
    """A project's job API. `project_id` is what that calls the project."""

    project_id: str
    job_api: HttpJobApi


class ProjectJobApis:
    """Hands each call to the job API of its project (ports.JobApi). `aclose` it at the end.

    Args:
        by_name: Each project's job API by the project's name.
    """

    def __init__(self, by_name: Mapping[str, ProjectJobApi]) -> None:
        self._by_name = by_name

    async def create(self, project: str, call: PromptCall) -> Job:
        """Starts a job."""
        of = self._of(project)
        return await of.job_api.create(of.project_id, call)

    async def send_message(self, project: str, job_id: str, call: PromptCall) -> Job:
        """Sends a follow-up to a job."""
        of = self._of(project)
        return await of.job_api.send_message(of.project_id, job_id, call)

    async def cancel(
        self, project: str, job_id: str, *, idempotency_key: str, requester: Requester | None = None
    ) -> Job:
        """Stops what a job does and what waits for it; safe to repeat."""
        of = self._of(project)
        return await of.job_api.cancel(of.project_id, job_id, idempotency_key=idempotency_key, requester=requester)

    async def discard(self, project: str, job_id: str, *, idempotency_key: str) -> Job:
        """Throws away what a failed job got done; safe to repeat."""
        of = self._of(project)
        return await of.job_api.discard(of.project_id, job_id, idempotency_key=idempotency_key)

    def can_cancel(self, project: str) -> bool:
        """Whether the project's job API can cancel."""
        of = self._find(project)
        return of is not None and of.job_api.can_cancel(of.project_id)

    def takes_files(self, project: str) -> bool:
        """Whether the project's job API takes files."""
        of = self._find(project)
        return of is not None and of.job_api.takes_files(of.project_id)

    async def upload(self, project: str, content: bytes, *, name: str, mimetype: str) -> PromptFile:
        """Gives the project's job API a file; safe to repeat."""
        of = self._of(project)
        return await of.job_api.upload(of.project_id, content, name=name, mimetype=mimetype)

    async def get(self, project: str, job_id: str) -> Job:
        """Reads a job."""
        of = self._of(project)
        return await of.job_api.get(of.project_id, job_id)

    async def look(self, project: str, job_id: str, *, unless: bytes = b"") -> SeenJob | None:
        """Reads a job, unless it has this fingerprint."""
        of = self._of(project)
        return await of.job_api.look(of.project_id, job_id, unless=unless)

    async def aclose(self) -> None:
        """Closes every connection. Later calls raise JobApiUnreachable."""
        await asyncio.gather(*(each.job_api.aclose() for each in self._by_name.values()))

    def _of(self, project: str) -> ProjectJobApi:
        found = self._find(project)
        if found is None:
            raise NoSuchProject("Pagehand's settings do not have this project any more.")
        return found

    def _find(self, project: str) -> ProjectJobApi | None:
        """The project of that name. Jobs of the time when it was the only one are known by its id."""
        if project in self._by_name:
            return self._by_name[project]
        same_id = [each for each in self._by_name.values() if each.project_id == project]
        return same_id[0] if len(same_id) == 1 else None
