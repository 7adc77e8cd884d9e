"""Proposes what was pushed, retrying what fails, and looks up the states of pull requests when their jobs are read."""

import asyncio
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from bot.errors import StoreError
from bot.jobapi.models import AgentJob, Changes, CheckResult, JobDetails, PullRequestDetails, PullRequestState
from bot.jobserver.errors import CodeHostError, JobServerError, NothingToProposeError
from bot.jobserver.pipeline.descriptions import (
    MAX_REASON,
    Proposal,
    answer_with,
    described,
    pull_request_description,
    subject,
    why_nothing_changed,
)
from bot.jobserver.pipeline.pictures import shown_pictures
from bot.jobserver.pipeline.tools import Edited, Prepared, Tools
from bot.jobserver.pull_requests.interface import NewPullRequest, OpenedPullRequest, PullRequests
from bot.jobserver.store.proposals import ProposalStore
from bot.jobserver.store.records import Instruction, Outcome, PendingProposal
from bot.jobserver.text import shortened
from bot.runtime.backoff import Backoff
from bot.runtime.tasks import BackgroundTasks

logger = logging.getLogger(__name__)
_RETRIES = Backoff(first=60.0, longest=3600.0, spread=(0.75, 1.0))
_PAUSE_S = 15.0
_PATIENCE_S = 2.0
"""How long a reader waits; the next reader gets the result."""
_MAY_CHANGE = {PullRequestState.OPEN, PullRequestState.CLOSED}
"""States that can change: a closed pull request may be reopened."""


@dataclass(frozen=True)
class _Proposed:
    """The result of a proposal. `reason`: why there is nothing to propose."""

    link: str | None = None
    details: PullRequestDetails | None = None
    reason: str | None = None


async def propose(tools: Tools, instruction: Instruction, pushed: Edited) -> Outcome:
    """Proposes a pushed change; a failure is retried later."""
    shown = await described(instruction, tools.masking)
    proposal = Proposal(
        shown.words,
        await asyncio.to_thread(tools.masking.all, pushed.result.summary),
        shown.requester,
        pushed.notes,
        pushed.left_out,
        pushed.checks,
        [file.name for file in instruction.attachments if file.instruction == instruction.number],
        await tools.queue.spent(instruction.job_id),
    )
    proposed = await _propose(tools, await _record(tools, shown, proposal), pushed.commit)
    published: dict[str, object] = {"changes": pushed.changes, "pull_request": proposed.details}
    files = tools.repository.snapshot(pushed.commit)
    pictures = await asyncio.to_thread(shown_pictures, pushed.changes or Changes(), files, tools.masking.all)
    if link := proposed.link:
        at = partial(tools.pull_requests.picture_link, link, pushed.commit)
        pictures = tuple(each.model_copy(update={"link": at(each.path)}) for each in pictures)
    published |= {"revision": pushed.commit, "pictures": pictures}
    details = pushed.details.model_copy(update={"reason": proposed.reason, **published})
    return Outcome(commit=pushed.commit, pr_link=proposed.link, details=details)


async def propose_earlier(tools: Tools, prepared: Prepared, edited: Edited) -> Outcome:
    """Proposes what earlier instructions pushed, for one that changed nothing."""
    instruction, result, current = prepared.instruction, edited.result, prepared.pull_request
    pending = await tools.proposals.of_job(instruction.job_id)
    if pending is None or pending.branch != instruction.branch:
        pending = None
        is_ahead = prepared.start.parents[0] != prepared.start.base
        if is_ahead and not await tools.pull_requests.find(instruction.branch):
            words = next((earlier.words for earlier in instruction.conversation), instruction.words)
            shown = await described(replace(instruction, words=words), tools.masking)
            pending = await _record(tools, shown, Proposal(shown.words, requester=shown.requester))
    proposed = await _propose(tools, pending) if pending else _Proposed()
    question = result.question or result.closing_question
    details = JobDetails(
        summary=answer_with(result.summary, (), result.notes),
        reason=why_nothing_changed(result.reason, question, edited.left_out),
        question=question or None,
        question_fields=result.question_fields,
        examples=result.examples,
        pull_request=proposed.details or (_reported(current) if current else None),
    )
    return Outcome(pr_link=proposed.link, details=details)


async def retry_forever(tools: Tools, pause: float = _PAUSE_S) -> None:
    """Retries all failed proposals at once, then each when it is due; never returns."""
    is_first = True
    while True:
        try:
            if is_first:
                await tools.proposals.make_all_due()
            is_first = False
            await retry_due(tools)
        except Exception:
            logger.exception("pushed changes could not be proposed; trying again")
        await asyncio.sleep(pause)


async def retry_due(tools: Tools) -> None:
    while batch := await tools.proposals.take_due():
        for pending in batch:
            await _propose(tools, pending)


async def _record(tools: Tools, shown: Instruction, proposal: Proposal) -> PendingProposal:
    description = tools.masking.known(pull_request_description(proposal))
    return await tools.proposals.record_change(
        shown, title=subject(proposal.words), description=description, checks=proposal.checks
    )


async def _propose(tools: Tools, pending: PendingProposal, commit: str | None = None) -> _Proposed:
    """Tries once; a failure is recorded and retried later. Idempotent. `commit` is what was pushed just now."""
    try:
        pull_request, missing = await _open_or_update(tools, pending, commit)
    except NothingToProposeError as error:
        return await _dropped(tools, pending, error)
    except JobServerError as error:
        return await _refused(tools, pending, error)
    why = shortened("; ".join(missing), MAX_REASON) or None
    reported = _reported(pull_request, pending.checks).model_copy(update={"reason": why})
    details = await tools.proposals.record_proposed(pending, reported, pull_request.link)
    if why:
        logger.warning("pull request %d: %s", pull_request.number, why)
    if pending.failures:
        logger.info("job %s: pull request %d is open", pending.job_id, pull_request.number)
    return _Proposed(pull_request.link, details)


async def _open_or_update(
    tools: Tools, pending: PendingProposal, commit: str | None
) -> tuple[OpenedPullRequest, tuple[str, ...]]:
    host = tools.pull_requests
    pull_request = await host.find(pending.branch)
    if pull_request is None:
        pull_request = await host.open(
            NewPullRequest(pending.branch, pending.title, pending.description, pending.requester, commit)
        )
    # A pull request that ended while this server was down either contains the pushed commit or rejected it.
    elif pull_request.state is not PullRequestState.OPEN:
        return pull_request, ()
    elif pending.description:
        await host.update(pull_request, pending.description)
    extras = await host.add_extras(pull_request, pending.requester) if pending.wants_extras else ()
    return pull_request, extras


async def _dropped(tools: Tools, pending: PendingProposal, error: NothingToProposeError) -> _Proposed:
    """Drops a proposal if git agrees: a code host may not see a branch yet that was just pushed."""
    try:
        if await tools.repository.is_ahead(pending.branch):
            raise CodeHostError("the code host does not see yet what was pushed")
    except JobServerError as unknown:
        return await _refused(tools, pending, unknown)
    await tools.proposals.drop(pending)
    return _Proposed(reason=str(error))


async def _refused(tools: Tools, pending: PendingProposal, error: JobServerError) -> _Proposed:
    reason = shortened(str(error), MAX_REASON)
    if pending.failures == 0:
        logger.warning("job %s has no pull request yet, will try again: %s", pending.job_id, reason)
    pause = _RETRIES.delay(pending.failures + 1, jitter=random.random())  # noqa: S311 - spreads load
    return _Proposed(details=await tools.proposals.record_refused(pending, reason, pause=timedelta(seconds=pause)))


def _reported(pull_request: OpenedPullRequest, checks: Sequence[CheckResult] = ()) -> PullRequestDetails:
    return PullRequestDetails(number=pull_request.number, state=pull_request.state, checks=tuple(checks))


class PullRequestStates:
    """Looks up a pull request's state when its job is read; concurrent readers of a job share one lookup."""

    def __init__(self, pull_requests: PullRequests, records: ProposalStore, *, patience: float = _PATIENCE_S) -> None:
        self._pull_requests = pull_requests
        self._records = records
        self._patience = patience
        self._tasks = BackgroundTasks()
        self._lookups: dict[str, asyncio.Task[PullRequestState]] = {}

    async def as_of_now(self, job: AgentJob) -> AgentJob:
        """Returns the job with its pull request's current state, or the last known one if the lookup takes too long."""
        details = job.details
        known = details.pull_request if details else None
        if details is None or known is None or known.number is None or known.state not in _MAY_CHANGE:
            return job
        lookup = self._lookups.get(job.id) or self._start(job.id, known.number, known.state)
        await asyncio.wait({lookup}, timeout=self._patience)
        if not lookup.done() or lookup.cancelled():
            return job
        reported = known.model_copy(update={"state": lookup.result()})
        return job.model_copy(update={"details": details.model_copy(update={"pull_request": reported})})

    async def stop(self) -> None:
        await self._tasks.cancel()

    def _start(self, job_id: str, number: int, known: PullRequestState) -> asyncio.Task[PullRequestState]:
        lookup = self._tasks.spawn(self._look_up(job_id, number, known), name=f"the pull request of job {job_id}")
        self._lookups[job_id] = lookup
        lookup.add_done_callback(lambda _: self._lookups.pop(job_id, None))
        return lookup

    async def _look_up(self, job_id: str, number: int, known: PullRequestState) -> PullRequestState:
        try:
            state = (await self._pull_requests.read(number)).state or known
            if state is not known:
                await self._records.record_state(job_id, number, state)
        except (JobServerError, StoreError) as error:
            logger.info("cannot look up the state of pull request %d: %s", number, error)
            return known
        return state
