"""Opens pull requests for what was pushed: at once, or where that fails, by later retries."""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from bot.jobserver.errors import JobServerError, NothingToProposeError
from bot.jobserver.executor.foreign_text import MAX_REASON
from bot.jobserver.models import CheckResult, ProposalState, PullRequestDetails, PullRequestState
from bot.jobserver.pull_requests.interface import MissingExtra, NewPullRequest, OpenedPullRequest, PullRequests
from bot.jobserver.store.proposals import ProposalStore
from bot.jobserver.store.records import OwedProposal
from bot.jobserver.text import shortened
from bot.runtime.backoff import Backoff

logger = logging.getLogger(__name__)
_RETRIES = Backoff(first=60.0, longest=3600.0, spread=(0.75, 1.0))
_PAUSE_S = 15.0
_MAX_CHECKS = 30


@dataclass(frozen=True)
class Proposed:
    """What came of it. `reason`: why there is nothing to propose."""

    link: str | None = None
    details: PullRequestDetails | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Proposing:
    """Opens pull requests and brings them up to date. Doing it twice is as doing it once."""

    pull_requests: PullRequests
    records: ProposalStore
    jitter: Callable[[], float] = random.random

    async def propose(self, owed: OwedProposal) -> Proposed:
        """Tries it once; what is refused is recorded, and due again later."""
        try:
            pull_request, missing = await self._open_or_update(owed)
        except NothingToProposeError as error:
            await self.records.drop(owed)
            return Proposed(reason=str(error))
        except JobServerError as error:
            return await self._refused(owed, error)
        told = pull_request_details(pull_request, owed.checks).model_copy(update={"reason": _in_words(missing)})
        extras = [one.extra for one in missing]
        details = await self.records.record_proposed(
            owed, told, pull_request.link, missing=extras, pause=self._pause_after(owed)
        )
        _log_proposed(owed, pull_request, missing)
        return Proposed(pull_request.link, details)

    async def _open_or_update(self, owed: OwedProposal) -> tuple[OpenedPullRequest, tuple[MissingExtra, ...]]:
        pull_request = await self.pull_requests.find(owed.branch)
        if pull_request is None:
            new = NewPullRequest(owed.branch, owed.title, owed.description, owed.requester)
            pull_request = await self.pull_requests.open(new)
        # One that ended while this server was down holds the pushed commit, or refused it: either is an end.
        elif pull_request.state is not PullRequestState.OPEN:
            return pull_request, ()
        elif owed.description:
            await self.pull_requests.update(pull_request, owed.description)
        return pull_request, await self.pull_requests.add_extras(pull_request, owed.extras, owed.requester)

    async def _refused(self, owed: OwedProposal, error: JobServerError) -> Proposed:
        reason = shortened(str(error), MAX_REASON)
        if owed.failures == 0:
            logger.warning("job %s has no pull request yet, it is tried again later: %s", owed.job_id, reason)
        return Proposed(details=await self.records.record_refused(owed, reason, pause=self._pause_after(owed)))

    def _pause_after(self, owed: OwedProposal) -> timedelta:
        return timedelta(seconds=_RETRIES.delay(owed.failures + 1, jitter=self.jitter()))


class ProposalRetries:
    """Proposes what could not be proposed when it was pushed."""

    def __init__(self, proposing: Proposing) -> None:
        self._proposing = proposing

    async def run(self) -> None:
        """Tries all at once, then each when it is due; never returns."""
        await self._proposing.records.make_all_due()
        while True:
            try:
                await self.sweep()
            except Exception:
                logger.exception("what is pushed could not be proposed; trying again")
            await asyncio.sleep(_PAUSE_S)

    async def sweep(self) -> None:
        """Tries those that are due."""
        while batch := await self._proposing.records.due():
            for owed in batch:
                await self._proposing.propose(owed)


def pull_request_details(pull_request: OpenedPullRequest, checks: Sequence[CheckResult] = ()) -> PullRequestDetails:
    """Returns what is told of a pull request. `checks` are our own, which come first."""
    return PullRequestDetails(
        number=pull_request.number,
        state=ProposalState(pull_request.state),
        checks=(*checks, *pull_request.checks)[:_MAX_CHECKS],
    )


def _in_words(missing: Sequence[MissingExtra]) -> str | None:
    words = "; ".join(one.reason for one in missing)
    return shortened(words, MAX_REASON) if words else None


def _log_proposed(owed: OwedProposal, pull_request: OpenedPullRequest, missing: Sequence[MissingExtra]) -> None:
    for one in missing if owed.failures == 0 else ():
        logger.warning("pull request %d: %s", pull_request.number, one.reason)
    if owed.failures and not missing:
        logger.info("job %s has all of its pull request %d now", owed.job_id, pull_request.number)
