"""Agents' full answers, from the job API; Pagehand keeps only their beginnings."""

import asyncio
from dataclasses import replace

from bot.domain.jobs.details import digest
from bot.domain.threads.thread import Thread
from bot.errors import JobApiError, JobGone
from bot.jobapi.models import JobDetails
from bot.notices.answers import AnswerMissing, AnswerRequested
from bot.ports.job_api import JobApi

PATIENCE = 8.0
"""Seconds to fetch a full answer while the notice is claimed."""


class WholeAnswers:
    """Fetches full answers. A failed fetch is reported, and the person can press the button again. `patience` is in
    seconds.
    """

    def __init__(self, job_api: JobApi, *, patience: float = PATIENCE) -> None:
        self._job_api = job_api
        self._patience = patience

    async def find(self, thread: Thread, wanted: AnswerRequested) -> AnswerRequested:
        """Returns the notice with the full answer, or with the reason why it cannot be shown."""
        if thread.state.job is None:
            return replace(wanted, missing=AnswerMissing.GONE)
        try:
            async with asyncio.timeout(self._patience):
                job = await self._job_api.get(thread.project, thread.state.job.id)
        except JobGone:
            return replace(wanted, missing=AnswerMissing.GONE)
        except (JobApiError, TimeoutError):
            return replace(wanted, missing=AnswerMissing.NOT_NOW)
        return _found(wanted, job.details)


def _found(wanted: AnswerRequested, details: JobDetails | None) -> AnswerRequested:
    if details is None or not details.summary:
        return replace(wanted, missing=AnswerMissing.GONE)
    if digest(details.summary) != wanted.answer_id:
        return replace(wanted, missing=AnswerMissing.NEWER)
    return replace(wanted, text=details.summary)
