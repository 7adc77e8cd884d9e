"""The job API as the workers call it, and the requester that it gets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.domain.jobs.job import Job
from bot.domain.requests.request import Requester, UploadedFile


@dataclass(frozen=True)
class SeenJob:
    """A job as one poll saw it. Two polls with the same `fingerprint` saw the same job."""

    job: Job
    fingerprint: bytes


class JobReader(Protocol):
    """Reads jobs; `project` is the name of a project. Raises only JobApiError's classes, within a bounded time."""

    async def look(self, project: str, job_id: str, *, unless: bytes = b"") -> SeenJob | None:
        """Reads a job; None if its fingerprint is `unless`."""


@dataclass(frozen=True)
class PromptCall:
    """The call that creates a job, or sends a follow-up to one.

    `instruction` is the part of the prompt that its writer wants done, where the rest is context. It, `requester` and
    `files` are only for servers known to support them. A repeated call keeps its `idempotency_key`.
    """

    prompt: str
    idempotency_key: str
    requester: Requester | None = None
    files: Sequence[UploadedFile] = ()
    instruction: str | None = None


class JobApi(JobReader, Protocol):
    """The job API (specification, part 4); `project` is the name of a project. All methods raise only JobApiError's
    classes, within a bounded time.
    """

    async def create(self, project: str, call: PromptCall) -> Job:
        """Starts a job."""

    async def send_message(self, project: str, job_id: str, call: PromptCall) -> Job:
        """Sends a follow-up to a job."""

    async def get(self, project: str, job_id: str) -> Job:
        """Reads a job."""

    def can_cancel(self, project: str) -> bool:
        """Returns whether the project's job API can cancel a job."""

    async def cancel(
        self, project: str, job_id: str, *, idempotency_key: str, requester: Requester | None = None
    ) -> Job:
        """Stops a job's current and pending work; safe to repeat. Only if `can_cancel`."""

    async def discard(self, project: str, job_id: str, *, idempotency_key: str) -> Job:
        """Discards the unfinished work of a failed job; safe to repeat. Only if the job's details mention such work."""

    def takes_files(self, project: str) -> bool:
        """Returns whether the project's job API accepts files."""

    async def upload(self, project: str, content: bytes, *, name: str, mimetype: str) -> UploadedFile:
        """Uploads a file to the job API; safe to repeat. Only if `takes_files`."""


class Requesters(Protocol):
    """Looks up requesters for job APIs."""

    async def requester(self, person_id: str, channel_id: str, thread_ts: str) -> Requester:
        """Returns the person, with the thread's address if it is available quickly. Never raises."""
