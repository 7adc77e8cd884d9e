"""The job API as the workers call it, and who asked, as a job API is told."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.jobs.job import Job
from bot.domain.requests.request import Requester, UploadedFile


@dataclass(frozen=True)
class SeenJob:
    """A job as one look showed it. Two looks with the same `fingerprint` showed the same job."""

    job: Job
    fingerprint: bytes


class JobReader(Protocol):
    """Reads jobs; projects go by their names. Raises only JobApiError's classes, within a bounded time."""

    async def look(self, project: str, job_id: str, *, unless: bytes = b"") -> SeenJob | None:
        """Reads a job; None where its fingerprint is `unless`."""


@dataclass(frozen=True)
class PromptCall:
    """The call that creates a job, or sends a follow-up to one.

    `requester` and `files` are for servers known to take them. A repeated call keeps its `idempotency_key`.
    """

    prompt: str
    idempotency_key: str
    requester: Requester | None = None
    files: Sequence[UploadedFile] = ()


class JobApi(JobReader, Protocol):
    """The job API (specification, part 4); projects go by their names. Every method raises only JobApiError's classes,
    within a bounded time.
    """

    async def create(self, project: str, call: PromptCall) -> Job:
        """Starts a job."""

    async def send_message(self, project: str, job_id: str, call: PromptCall) -> Job:
        """Sends a follow-up to a job."""

    async def get(self, project: str, job_id: str) -> Job:
        """Reads a job."""

    def can_cancel(self, project: str) -> bool:
        """Whether the project's job API can cancel a job."""

    async def cancel(
        self, project: str, job_id: str, *, idempotency_key: str, requester: Requester | None = None
    ) -> Job:
        """Stops a job's current and pending work; safe to repeat. Only if `can_cancel`."""

    async def discard(self, project: str, job_id: str, *, idempotency_key: str) -> Job:
        """Discards the unfinished work of a failed job; safe to repeat. Only if the job's details mention such work."""

    def takes_files(self, project: str) -> bool:
        """Whether the project's job API takes files."""

    async def upload(self, project: str, content: bytes, *, name: str, mimetype: str) -> UploadedFile:
        """Uploads a file to the job API; safe to repeat. Only if `takes_files`."""


class Requesters(Protocol):
    """Who asked for something, as a job API is told."""

    async def requester(self, person_id: str, channel_id: str, thread_ts: str) -> Requester:
        """The person, with the thread's address if it can be had in a moment. Never raises."""
