"""Looks up the states of pull requests when their jobs are read."""

import asyncio
import logging
import sqlite3

from bot.jobapi.models import AgentJob, PullRequestState
from bot.jobserver.errors import JobServerError
from bot.jobserver.pull_requests.interface import PullRequests
from bot.jobserver.store.proposals import ProposalStore
from bot.runtime.tasks import BackgroundTasks

logger = logging.getLogger(__name__)
_PATIENCE_S = 2.0
"""How long a reader waits; the next reader gets the result."""
_MOST_LOOKUPS, _MOST_WAITING = 4, 200
_MAY_CHANGE = {PullRequestState.OPEN, PullRequestState.CLOSED}
"""States that can change: a closed pull request may be reopened."""


class PullRequestStates:
    """Looks up a pull request's state when its job is read; concurrent readers of a job share one lookup."""

    def __init__(self, pull_requests: PullRequests, records: ProposalStore, *, patience: float = _PATIENCE_S) -> None:
        self._pull_requests = pull_requests
        self._records = records
        self._patience = patience
        self._tasks = BackgroundTasks()
        self._lookups: dict[str, asyncio.Task[PullRequestState]] = {}
        self._slots = asyncio.Semaphore(_MOST_LOOKUPS)

    async def as_of_now(self, job: AgentJob) -> AgentJob:
        """Returns the job with its pull request's current state, or the last known one if the lookup takes too long."""
        details = job.details
        known = details.pull_request if details else None
        if details is None or known is None or known.number is None or known.state not in _MAY_CHANGE:
            return job
        lookup = self._lookups.get(job.id) or self._start(job.id, known.number, known.state)
        if lookup is None:
            return job
        await asyncio.wait({lookup}, timeout=self._patience)
        if not lookup.done() or lookup.cancelled():
            return job
        reported = known.model_copy(update={"state": lookup.result()})
        return job.model_copy(update={"details": details.model_copy(update={"pull_request": reported})})

    async def stop(self) -> None:
        await self._tasks.cancel()

    def _start(self, job_id: str, number: int, known: PullRequestState) -> asyncio.Task[PullRequestState] | None:
        if len(self._lookups) >= _MOST_WAITING:
            return None
        lookup = self._tasks.spawn(self._look_up(job_id, number, known), name=f"the pull request of job {job_id}")
        self._lookups[job_id] = lookup
        lookup.add_done_callback(lambda _: self._lookups.pop(job_id, None))
        return lookup

    async def _look_up(self, job_id: str, number: int, known: PullRequestState) -> PullRequestState:
        try:
            async with self._slots:
                state = PullRequestState(await self._pull_requests.state(number))
            if state is not known:
                await self._records.record_state(job_id, number, state)
        except (JobServerError, sqlite3.Error) as error:
            logger.info("cannot look up the state of pull request %d: %s", number, error)
            return known
        return state
