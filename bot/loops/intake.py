"""Intake: brings each request to the job API, and records what it answered."""

import logging
import random
from collections.abc import Sequence
from dataclasses import replace

from bot.domain.decide import OutOfReach, Polling, next_look, open_round
from bot.domain.models import Job, Known, Mark, Request, RequestKind, RequestState, Thread
from bot.domain.settle import Outcome, Settlement, Taken, TurnedAway, Unsure, refusal, settle
from bot.errors import (
    JobApiBusy,
    JobApiError,
    JobApiNotAllowed,
    JobApiRefused,
    JobApiUnreachable,
    JobGone,
    NoSuchProject,
)
from bot.loops.loop import Loop, Terms
from bot.ports import ClaimedRequest, JobApi, Store, Transaction
from bot.service import CARD, marking

logger = logging.getLogger(__name__)

_REASONS: dict[type[JobApiError], str] = {NoSuchProject: "project", JobGone: "gone", JobApiRefused: "api"}


class Intake(Loop[ClaimedRequest]):
    """Sends requests that are due.

    `asks_once`: the server promises that a repeated Idempotency-Key runs once, so that what may have arrived is simply
    sent again.
    """

    def __init__(
        self,
        store: Store,
        job_api: JobApi,
        terms: Terms,
        *,
        polling: Polling,
        asks_once: bool,
        at_once: int = 8,
    ) -> None:
        super().__init__(store, terms, at_once=at_once)
        self._job_api = job_api
        self._polling = polling
        self._asks_once = asks_once

    async def take(self, limit: int) -> Sequence[ClaimedRequest]:
        """Claims requests that are due, and opens a round for each follow-up: only so is nothing missed, or said to
        have been there before, of what the job does until it is recorded that the follow-up was taken.
        """

        async def claim(tx: Transaction) -> list[ClaimedRequest]:
            claimed = await tx.claim_requests(self._owner, lease=self._lease, limit=limit)
            # In this order, as whoever saves polls: so that no two wait for each other.
            return [await self._opened(tx, item) for item in sorted(claimed, key=lambda item: item.thread.id)]

        return await self._store.transact(claim)

    async def work(self, item: ClaimedRequest, taken_at: float) -> None:
        """Sends one request, unless it may have been sent before, and records the outcome."""
        if item.uncertain and not self._asks_once:
            outcome: Outcome = Unsure("the process that sent it ended before the answer came")
        elif not self.in_time(taken_at):
            await self._store.transact(lambda tx: self._hand_back(tx, item.request))
            return
        else:
            outcome = await self._send(item.request, item.thread)
        jitter = _jitter()
        await self.record(lambda tx: self._settle(tx, item, outcome, jitter))

    async def _opened(self, tx: Transaction, item: ClaimedRequest) -> ClaimedRequest:
        if item.request.kind is RequestKind.START:
            return item
        thread = item.thread
        known = open_round(thread.known, tx.now, self._polling)
        await tx.save_known(thread.id, known, poll_in=next_look(known, tx.now, self._polling, jitter=_jitter()))
        return replace(item, thread=replace(thread, known=known, revision=thread.revision + 1))

    async def _send(self, request: Request, thread: Thread) -> Outcome:
        try:
            job = await self._call(request, thread)
        except JobApiError as error:
            return self._failure(request, error)
        self.went_well()
        return Taken(job)

    async def _call(self, request: Request, thread: Thread) -> Job:
        if request.kind is RequestKind.START:
            return await self._job_api.create(thread.project_id, request.text, idempotency_key=request.id)
        if thread.known.job is None:
            raise JobGone("the thread has no job")
        return await self._job_api.send_message(
            thread.project_id, thread.known.job.id, request.text, idempotency_key=request.id
        )

    def _failure(self, request: Request, error: JobApiError) -> Outcome:
        logger.info("request %s: %s", request.id, error)
        match error:
            case JobApiBusy():
                return OutOfReach("asks to wait", retry_after=error.retry_after)
            case JobApiUnreachable():
                self.went_wrong(error, again_in=error.retry_after)
                return OutOfReach("can't be reached", retry_after=error.retry_after)
            case JobApiNotAllowed():
                self.went_wrong(error)
                return OutOfReach("does not let Pagehand in", status=error.status, retry_after=60.0)
            case NoSuchProject() | JobGone() | JobApiRefused():
                self.went_well()
                return TurnedAway(_REASONS[type(error)], error.words)
            case _:
                self.went_wrong(error, one_piece=True)
                return Unsure(str(error), ask_again=self._asks_once)

    async def _settle(self, tx: Transaction, item: ClaimedRequest, outcome: Outcome, jitter: float) -> None:
        thread = await tx.thread(item.thread.id)
        request = await tx.request(item.request.id)
        if thread is None or request is None:
            return
        held = await tx.holds_request(request.id, self._owner)
        late_truth = request.state is RequestState.UNSURE and isinstance(outcome, Taken)
        if not held and not late_truth:
            return
        if isinstance(outcome, Taken):
            # A server that runs a key once may repeat its first answer.
            repeated = self._asks_once and request.attempts > 1
            outdated = repeated or _learnt(thread.known) != _learnt(item.thread.known)
            outcome = replace(outcome, outdated=outdated)
        settlement = settle(request, thread.known, outcome, tx.now, self._polling, jitter=jitter)
        await self._apply(tx, thread, request, settlement)

    async def _apply(self, tx: Transaction, thread: Thread, request: Request, settlement: Settlement) -> None:
        await tx.settle_request(request.id, settlement.state, problem=settlement.problem, due_in=settlement.due_in)
        await save_known(tx, thread, settlement.known, poll_in=settlement.poll_in)
        if settlement.mark is not None:
            await tx.say(thread.id, marking(request, settlement.mark))
        for saying in settlement.sayings:
            await tx.say(thread.id, saying)
        if request.kind is RequestKind.START and settlement.state is RequestState.REFUSED:
            await refuse_follow_ups(tx, thread.id)

    async def _hand_back(self, tx: Transaction, request: Request) -> None:
        """Gives a request back that was certainly not sent, if nobody else has taken it over."""
        if await tx.holds_request(request.id, self._owner):
            await tx.settle_request(request.id, RequestState.WAITING)


def _learnt(known: Known) -> tuple[object, ...]:
    """What looking at the job can have told."""
    return known.job, known.round, known.said, known.links


def _jitter() -> float:
    return random.random()  # noqa: S311 - spreads polls and retries, guards nothing


async def save_known(tx: Transaction, thread: Thread, known: Known, *, poll_in: float | None) -> None:
    """Saves what is known, if it is news, and has the card show it."""
    if known == thread.known:
        return
    await tx.save_known(thread.id, known, poll_in=poll_in)
    await tx.say(thread.id, CARD)


async def refuse_follow_ups(tx: Transaction, thread_id: str) -> None:
    """Tells those who have replied already that there will be no job to steer."""
    for follow_up in await tx.open_follow_ups(thread_id):
        await tx.settle_request(follow_up.id, RequestState.REFUSED, problem="not_started")
        await tx.say(thread_id, marking(follow_up, Mark.PROBLEM))
        await tx.say(thread_id, refusal(follow_up, "not_started"))
