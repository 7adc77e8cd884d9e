"""Finds the whole of an agent's answer again, at the job API: Pagehand keeps its beginning only."""

import asyncio
from dataclasses import replace

from bot.domain.jobs.details import JobDetails, digest
from bot.domain.notices.messages import AnswerMissing, AnswerRequested
from bot.domain.threads.thread import Thread
from bot.errors import JobApiError, JobGone
from bot.ports.ports import JobApi

PATIENCE = 8.0
"""Seconds that somebody waits for it: the notice is claimed meanwhile."""


class WholeAnswers:
    """The answers of agents, as the job API keeps them. A fetch that fails is told; the person can press again."""

    def __init__(self, job_api: JobApi, *, patience: float = PATIENCE) -> None:
        self._job_api = job_api
        self._patience = patience

    async def find(self, thread: Thread, wanted: AnswerRequested) -> AnswerRequested:
        """Returns the request with the whole answer, or with why that cannot be shown."""
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
