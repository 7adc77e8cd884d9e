"""Looks up the state of a job's pull request when the job is read."""

import asyncio
import logging
import sqlite3

from bot.jobserver.errors import JobServerError
from bot.jobserver.models import AgentJob, ProposalState
from bot.jobserver.pull_requests.interface import PullRequests
from bot.jobserver.store.proposals import ProposalStore
from bot.runtime.tasks import BackgroundTasks

logger = logging.getLogger(__name__)
_PATIENCE_S = 2.0
"""For how long a reader waits; whoever reads next has it then."""
_AT_ONCE, _MOST_WAITING = 4, 200
_MAY_CHANGE = {ProposalState.OPEN, ProposalState.CLOSED}
"""People reopen what was closed; what is merged stays so."""


class PullRequestStates:
    """Looks when somebody reads a job; many readers of one job cost one look."""

    def __init__(self, pull_requests: PullRequests, records: ProposalStore, *, patience: float = _PATIENCE_S) -> None:
        self._pull_requests = pull_requests
        self._records = records
        self._patience = patience
        self._tasks = BackgroundTasks()
        self._looking: dict[str, asyncio.Task[ProposalState]] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def as_of_now(self, job: AgentJob) -> AgentJob:
        """Returns the job with its pull request's current state, or the last known one where that takes too long."""
        details = job.details
        known = details.pull_request if details else None
        if details is None or known is None or known.number is None or known.state not in _MAY_CHANGE:
            return job
        look = self._looking.get(job.id) or self._start(job.id, known.number, known.state)
        if look is None:
            return job
        await asyncio.wait({look}, timeout=self._patience)
        if not look.done() or look.cancelled():
            return job
        told = known.model_copy(update={"state": look.result()})
        return job.model_copy(update={"details": details.model_copy(update={"pull_request": told})})

    async def stop(self) -> None:
        await self._tasks.cancel()

    def _start(self, job_id: str, number: int, known: ProposalState) -> asyncio.Task[ProposalState] | None:
        if len(self._looking) >= _MOST_WAITING:
            return None
        look = self._tasks.spawn(self._look(job_id, number, known), name=f"the pull request of job {job_id}")
        self._looking[job_id] = look
        look.add_done_callback(lambda _: self._looking.pop(job_id, None))
        return look

    async def _look(self, job_id: str, number: int, known: ProposalState) -> ProposalState:
        try:
            async with self._slots:
                state = ProposalState(await self._pull_requests.state(number))
            if state is not known:
                await self._records.record_state(job_id, number, state)
        except (JobServerError, sqlite3.Error) as error:
            logger.info("the state of pull request %d is not known now: %s", number, error)
            return known
        return state
