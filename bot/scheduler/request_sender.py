"""The request sender: brings each request to the job API, and records what it answered."""

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from bot.domain.jobs import ARCHIVED, Job
from bot.domain.mentions import keeping_names, mentioned, with_names
from bot.domain.notices.messages import CARD_CHANGED, Reaction
from bot.domain.observe import Polling, next_poll_in, open_round
from bot.domain.projects import JobApiAbilities
from bot.domain.requests import RejectionReason, Request, Requester, RequestKind, RequestState
from bot.domain.settle import Accepted, Rejected, SendOutcome, Settlement, Uncertain, rejection, settle
from bot.domain.threads import Thread, ThreadState
from bot.errors import (
    JobApiBusy,
    JobApiError,
    JobApiNotAllowed,
    JobApiRejected,
    JobApiUnreachable,
    JobGone,
    NoSuchProject,
)
from bot.ports import HasNotices, HasNow, HasRequestQueue, HasThreads, JobApi, People, Requesters, Store
from bot.replies import RequestTransaction, catch_up, reaction_notice
from bot.scheduler.job_api_errors import unavailable
from bot.scheduler.job_api_worker import JobApiWorker
from bot.scheduler.worker import WorkerSettings
from bot.store_ports import ClaimedRequest

logger = logging.getLogger(__name__)

NOT_ALLOWED_RETRY = 60.0
"""Seconds before a request is sent again after the job API refused our key: till somebody has mended that."""


class SenderTransaction(HasNow, HasThreads, HasRequestQueue, HasNotices, Protocol):
    """What sending requests touches."""


class RequestSender(JobApiWorker[ClaimedRequest]):
    """Sends requests that are due.

    Args:
        store: Where requests are claimed, and what became of them is recorded.
        job_api: Where they go.
        settings: On what terms it works.
        polling: How soon a job is polled after a request.
        abilities: What the job API of a project can do, by the project's name. Where it runs a repeated Idempotency-Key
            once, what may have arrived is sent again.
        concurrency: Requests under way at a time.
        people: Knows the names of those whom a request mentions.
        requesters: Knows who asked, where the job API is to be told; None where it takes nothing but the words.
    """

    name = "request sender"

    def __init__(
        self,
        store: Store,
        job_api: JobApi,
        settings: WorkerSettings,
        *,
        polling: Polling,
        abilities: Callable[[str], JobApiAbilities],
        concurrency: int = 8,
        people: People | None = None,
        requesters: Requesters | None = None,
    ) -> None:
        super().__init__(store, settings, concurrency=concurrency)
        self._job_api = job_api
        self._polling = polling
        self._abilities = abilities
        self._people = people
        self._requesters = requesters

    async def claim(self, limit: int) -> Sequence[ClaimedRequest]:
        """Claims requests that are due, and opens a round for each follow-up before it is sent: what the job does from
        then on is news, even if a poll sees it before it is recorded that the follow-up was accepted.
        """

        async def work(tx: SenderTransaction) -> list[ClaimedRequest]:
            claimed = await tx.requests.claim(self._owner, lease=self._lease, limit=limit)
            # Each locks its thread: in the order of `bot.store.session`.
            return [await self._opened(tx, item) for item in sorted(claimed, key=lambda item: item.thread.id)]

        return await self._store.transact(work)

    async def process(self, item: ClaimedRequest, claimed_at: float) -> None:
        """Sends one request, unless it may have been sent before, and records the outcome."""
        if item.uncertain and not self._abilities(item.thread.project).idempotent:
            outcome: SendOutcome = Uncertain("the process that sent it ended before the answer came")
        else:
            request = await self._with_requester(await self._with_names(item.request), item.thread)
            if not self.lease_covers_call(claimed_at):
                await self._store.transact(lambda tx: self._hand_back(tx, item.request))
                return
            outcome = await self._send(request, item.thread)
        jitter = _jitter()
        await self.record(lambda tx: self._settle(tx, item, outcome, jitter))

    async def _opened(self, tx: SenderTransaction, item: ClaimedRequest) -> ClaimedRequest:
        if item.request.kind is RequestKind.START:
            return item
        thread = item.thread
        state = open_round(thread.state, tx.now, self._polling, _asker_id(item.request, thread))
        await tx.threads.save_state(
            thread.id, state, poll_in=next_poll_in(state, tx.now, self._polling, jitter=_jitter())
        )
        return replace(item, thread=replace(thread, state=state, revision=thread.revision + 1))

    async def _with_names(self, request: Request) -> Request:
        """The request as it is sent, with the names of those whom it mentions. They are recorded before, since the job
        API refuses a repeated key with other words.
        """
        ids = mentioned(request.text)
        if ids:
            names = await self._people.names(ids) if self._people is not None else {}
            request = replace(request, text=keeping_names(request.text, names))
            await self.record(lambda tx: self._keep_text(tx, request.id, request.text))
        return replace(request, text=with_names(request.text, {}))

    async def _keep_text(self, tx: SenderTransaction, request_id: str, text: str) -> None:
        if await tx.requests.is_claimed_by(request_id, self._owner):
            await tx.requests.set_text(request_id, text)

    async def _with_requester(self, request: Request, thread: Thread) -> Request:
        """The request with who asked for it, where the job API is told that. It is recorded before, as names are; what
        was tried without it stays without, since the job API may refuse a repeated key with another body.
        """
        if self._requesters is None or request.requester is not None or request.attempts > 1:
            return request
        if not self._abilities(thread.project).requester:
            return request
        requester = await self._requesters.requester(request.person_id, thread.channel_id, thread.ts or "")
        await self.record(lambda tx: self._keep_requester(tx, request.id, requester))
        return replace(request, requester=requester)

    async def _keep_requester(self, tx: SenderTransaction, request_id: str, requester: Requester) -> None:
        if await tx.requests.is_claimed_by(request_id, self._owner):
            await tx.requests.set_requester(request_id, requester)

    async def _send(self, request: Request, thread: Thread) -> SendOutcome:
        if request.kind is RequestKind.FOLLOW_UP and thread.state.job and thread.state.job.status == ARCHIVED:
            return Rejected(RejectionReason.ARCHIVED)  # seen since the reply was recorded
        try:
            job = await self._call(request, thread)
        except JobApiError as error:
            return self._failure(request, thread.project, error)
        self.record_answer(thread.project)
        return Accepted(job)

    async def _call(self, request: Request, thread: Thread) -> Job:
        if request.kind is RequestKind.START:
            return await self._job_api.create(
                thread.project, request.text, idempotency_key=request.id, requester=request.requester
            )
        if thread.state.job is None:
            raise JobGone("the thread has no job")
        job_id = thread.state.job.id
        return await self._job_api.send_message(
            thread.project, job_id, request.text, idempotency_key=request.id, requester=request.requester
        )

    def _failure(self, request: Request, project: str, error: JobApiError) -> SendOutcome:
        logger.info("request %s: %s", request.id, error)
        match error:
            case JobApiBusy():
                return unavailable(error)
            case JobApiUnreachable():
                self.record_no_answer(project, error, retry_after=error.retry_after)
                return unavailable(error)
            case JobApiNotAllowed():
                self.record_no_answer(project, error)
                return replace(unavailable(error), retry_after=NOT_ALLOWED_RETRY)
            case NoSuchProject() | JobGone() | JobApiRejected():
                self.record_answer(project)
                return Rejected(_reason(error), error.words)
            case _:
                self.record_no_answer(project, error, only_this_item=True)
                return Uncertain(str(error), ask_again=self._abilities(project).idempotent)

    async def _settle(self, tx: SenderTransaction, item: ClaimedRequest, outcome: SendOutcome, jitter: float) -> None:
        thread = await tx.threads.get(item.thread.id)
        request = await tx.requests.get(item.request.id)
        if thread is None or request is None:
            return
        held = await tx.requests.is_claimed_by(request.id, self._owner)
        late_truth = request.state is RequestState.UNCERTAIN and isinstance(outcome, Accepted)
        if not held and not late_truth:
            return
        if isinstance(outcome, Accepted):
            # A server that runs a key once may repeat its first answer.
            repeated = self._abilities(thread.project).idempotent and request.attempts > 1
            outdated = repeated or _observed(thread.state) != _observed(item.thread.state)
            outcome = replace(outcome, outdated=outdated)
        state = replace(thread.state, asker_id=_asker_id(request, thread))  # the end of an earlier round may be told
        settlement = settle(request, state, outcome, tx.now, self._polling, jitter=jitter)
        await self._apply(tx, thread, request, settlement)

    async def _apply(self, tx: SenderTransaction, thread: Thread, request: Request, settlement: Settlement) -> None:
        await tx.requests.settle(
            request.id,
            settlement.request_state,
            problem=settlement.problem,
            due_in=settlement.due_in,
            uncertain=settlement.uncertain,
        )
        await save_state(tx, thread, settlement.state, poll_in=settlement.poll_in)
        if settlement.reaction is not None:
            await tx.notices.add(thread.id, reaction_notice(request, settlement.reaction))
        for notice in settlement.notices:
            await tx.notices.add(thread.id, notice)
        uncertain = request.uncertain or settlement.uncertain
        await catch_up(
            tx, replace(request, state=settlement.request_state, problem=settlement.problem, uncertain=uncertain)
        )
        if request.kind is RequestKind.START and settlement.request_state is RequestState.REJECTED:
            await refuse_follow_ups(tx, thread.id)

    async def _hand_back(self, tx: SenderTransaction, request: Request) -> None:
        """Gives a request back that was certainly not sent, if nobody else has taken it over."""
        newest = await tx.requests.get(request.id)
        if newest is not None and await tx.requests.is_claimed_by(request.id, self._owner):
            await tx.requests.settle(request.id, RequestState.WAITING)
            await catch_up(tx, replace(newest, state=RequestState.WAITING))


def _reason(error: NoSuchProject | JobGone | JobApiRejected) -> RejectionReason:
    match error:
        case NoSuchProject():
            return RejectionReason.PROJECT
        case JobGone():
            return RejectionReason.GONE
        case JobApiRejected():
            return RejectionReason.ADDRESS if error.redirected else RejectionReason.API


def _asker_id(request: Request, thread: Thread) -> str:
    """Who wrote a follow-up, where that is not the thread's requester: whom the agent asks if it has a question."""
    return "" if request.person_id == thread.requester_id else request.person_id


def _observed(state: ThreadState) -> tuple[object, ...]:
    """What polling the job can have told."""
    return state.job, state.round, state.announced, state.links


def _jitter() -> float:
    return random.random()  # noqa: S311 - spreads polls and retries, guards nothing


async def save_state(tx: SenderTransaction, thread: Thread, state: ThreadState, *, poll_in: float | None) -> None:
    """Saves what is known, if it is news, and has the card show it."""
    if state == thread.state:
        return
    await tx.threads.save_state(thread.id, state, poll_in=poll_in)
    await tx.notices.add(thread.id, CARD_CHANGED)


async def refuse_follow_ups(tx: RequestTransaction, thread_id: str) -> None:
    """Tells those who have replied already that there will be no job to steer."""
    for follow_up in await tx.requests.waiting_follow_ups(thread_id):
        await tx.requests.settle(follow_up.id, RequestState.REJECTED, problem=RejectionReason.NOT_STARTED)
        await tx.notices.add(thread_id, reaction_notice(follow_up, Reaction.PROBLEM))
        await tx.notices.add(thread_id, rejection(follow_up, RejectionReason.NOT_STARTED))
