"""Opens pull requests for pushed branches, retries those that failed, and looks up their states."""

import asyncio
import logging
import random
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bot.jobserver.errors import CodeHostError, JobServerError, NothingToProposeError
from bot.jobserver.executor.foreign_text import MAX_REASON
from bot.jobserver.models import AgentJob, CheckResult, ProposalState, PullRequestDetails, PullRequestState
from bot.jobserver.pull_requests.interface import MissingExtra, NewPullRequest, OpenedPullRequest, PullRequests
from bot.jobserver.store.proposals import ProposalStore
from bot.jobserver.store.records import PendingProposal
from bot.jobserver.text import shortened
from bot.runtime.backoff import Backoff
from bot.runtime.tasks import BackgroundTasks

logger = logging.getLogger(__name__)
_RETRIES = Backoff(first=60.0, longest=3600.0, spread=(0.75, 1.0))
_PAUSE_S = 15.0
_MAX_CHECKS = 30
_PATIENCE_S = 2.0
"""How long a reader waits; the next reader gets the result."""
_MOST_LOOKUPS, _MOST_WAITING = 4, 200
_MAY_CHANGE = {ProposalState.OPEN, ProposalState.CLOSED}
"""States that can change: a closed pull request may be reopened."""


@dataclass(frozen=True)
class Proposed:
    """The result of a proposal. `reason`: why there is nothing to propose."""

    link: str | None = None
    details: PullRequestDetails | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Proposing:
    """Opens pull requests and brings them up to date; idempotent.

    `is_ahead`: whether git finds commits on a branch that the base branch lacks; raises JobServerError. `jitter`
    returns numbers from 0 to 1.
    """

    pull_requests: PullRequests
    records: ProposalStore
    is_ahead: Callable[[str], Awaitable[bool]]
    jitter: Callable[[], float] = random.random

    async def propose(self, pending: PendingProposal) -> Proposed:
        """Tries once; a failure is recorded and retried later."""
        try:
            pull_request, missing = await self._open_or_update(pending)
        except NothingToProposeError as error:
            return await self._dropped(pending, error)
        except JobServerError as error:
            return await self._refused(pending, error)
        reported = pull_request_details(pull_request, pending.checks).model_copy(update={"reason": _in_words(missing)})
        extras = [one.extra for one in missing]
        details = await self.records.record_proposed(
            pending, reported, pull_request.link, missing=extras, pause=self._pause_after(pending)
        )
        _log_proposed(pending, pull_request, missing)
        return Proposed(pull_request.link, details)

    async def _open_or_update(self, pending: PendingProposal) -> tuple[OpenedPullRequest, tuple[MissingExtra, ...]]:
        pull_request = await self.pull_requests.find(pending.branch)
        if pull_request is None:
            new = NewPullRequest(pending.branch, pending.title, pending.description, pending.requester)
            pull_request = await self.pull_requests.open(new)
        # A pull request that ended while this server was down either contains the pushed commit or rejected it.
        elif pull_request.state is not PullRequestState.OPEN:
            return pull_request, ()
        elif pending.description:
            await self.pull_requests.update(pull_request, pending.description)
        return pull_request, await self.pull_requests.add_extras(pull_request, pending.extras, pending.requester)

    async def _dropped(self, pending: PendingProposal, error: NothingToProposeError) -> Proposed:
        """Drops a proposal if git agrees: a code host may not see a branch yet that was just pushed."""
        try:
            if await self.is_ahead(pending.branch):
                return await self._refused(pending, CodeHostError("the code host does not see yet what was pushed"))
        except JobServerError as unknown:
            return await self._refused(pending, unknown)
        await self.records.drop(pending)
        return Proposed(reason=str(error))

    async def _refused(self, pending: PendingProposal, error: JobServerError) -> Proposed:
        reason = shortened(str(error), MAX_REASON)
        if pending.failures == 0:
            logger.warning("job %s has no pull request yet, will try again: %s", pending.job_id, reason)
        return Proposed(details=await self.records.record_refused(pending, reason, pause=self._pause_after(pending)))

    async def retry_forever(self) -> None:
        """Retries all failed proposals at once, then each when it is due; never returns."""
        await self.records.make_all_due()
        while True:
            try:
                await self.retry_due()
            except Exception:
                logger.exception("pushed changes could not be proposed; trying again")
            await asyncio.sleep(_PAUSE_S)

    async def retry_due(self) -> None:
        while batch := await self.records.due():
            for pending in batch:
                await self.propose(pending)

    def _pause_after(self, pending: PendingProposal) -> timedelta:
        return timedelta(seconds=_RETRIES.delay(pending.failures + 1, jitter=self.jitter()))


class PullRequestStates:
    """Looks up a pull request's state when its job is read; concurrent readers of a job share one lookup."""

    def __init__(self, pull_requests: PullRequests, records: ProposalStore, *, patience: float = _PATIENCE_S) -> None:
        self._pull_requests = pull_requests
        self._records = records
        self._patience = patience
        self._tasks = BackgroundTasks()
        self._lookups: dict[str, asyncio.Task[ProposalState]] = {}
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

    def _start(self, job_id: str, number: int, known: ProposalState) -> asyncio.Task[ProposalState] | None:
        if len(self._lookups) >= _MOST_WAITING:
            return None
        lookup = self._tasks.spawn(self._look_up(job_id, number, known), name=f"the pull request of job {job_id}")
        self._lookups[job_id] = lookup
        lookup.add_done_callback(lambda _: self._lookups.pop(job_id, None))
        return lookup

    async def _look_up(self, job_id: str, number: int, known: ProposalState) -> ProposalState:
        try:
            async with self._slots:
                state = ProposalState(await self._pull_requests.state(number))
            if state is not known:
                await self._records.record_state(job_id, number, state)
        except (JobServerError, sqlite3.Error) as error:
            logger.info("cannot lookup up the state of pull request %d: %s", number, error)
            return known
        return state


def pull_request_details(pull_request: OpenedPullRequest, checks: Sequence[CheckResult] = ()) -> PullRequestDetails:
    """Returns a pull request's details. `checks` are our own; they come first."""
    return PullRequestDetails(
        number=pull_request.number,
        state=ProposalState(pull_request.state),
        checks=(*checks, *pull_request.checks)[:_MAX_CHECKS],
    )


def _in_words(missing: Sequence[MissingExtra]) -> str | None:
    words = "; ".join(one.reason for one in missing)
    return shortened(words, MAX_REASON) if words else None


def _log_proposed(pending: PendingProposal, pull_request: OpenedPullRequest, missing: Sequence[MissingExtra]) -> None:
    for one in missing if pending.failures == 0 else ():
        logger.warning("pull request %d: %s", pull_request.number, one.reason)
    if pending.failures and not missing:
        logger.info("job %s: pull request %d is complete", pending.job_id, pull_request.number)
