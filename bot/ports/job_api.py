"""The job API as the workers call it, and the requester that it gets."""

from typing import Protocol

from bot.jobapi.models import Job, PromptCall, PromptFile, Requester, SeenJob


class JobApi(Protocol):
    """The job API (specification, part 4); `project` is the name of a project. All methods raise only JobApiError's
    classes, within a bounded time.
    """

    async def look(self, project: str, job_id: str, *, unless: bytes = b"") -> SeenJob | None:
        """Reads a job; None if its fingerprint is `unless`."""

    async def create(self, project: str, call: PromptCall) -> Job:
        """Starts a job."""

    async def send_message(self, project: str, job_id: str, call: PromptCall) -> Job:
        """Sends a follow-up to a job."""

    async def get(self, project: str, job_id: str) -> Job:
        """Reads a job."""

    async def cancel(
        self, project: str, job_id: str, *, idempotency_key: str, requester: Requester | None = None
    ) -> Job:
        """Stops a job's current and pending work; safe to repeat. Only if it has that ability."""

    async def discard(self, project: str, job_id: str, *, idempotency_key: str) -> Job:
        """Discards the unfinished work of a failed job; safe to repeat. Only if the job's details mention such work."""

    async def picture(self, project: str, job_id: str, picture_id: str) -> bytes:
        """Reads a picture of a job's details."""

    async def upload(self, project: str, content: bytes, *, name: str, mimetype: str) -> PromptFile:
        """Uploads a file to the job API; safe to repeat. Only if it accepts files."""


class Requesters(Protocol):
    """Looks up requesters for job APIs."""

    async def requester(self, person_id: str, channel_id: str, thread_ts: str) -> Requester:
        """Returns the person, with the thread's address if it is available quickly. Never raises."""
