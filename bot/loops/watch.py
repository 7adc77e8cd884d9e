"""The watch: polls each job when it is due, decides what the sighting means, and records state and notices together."""

import asyncio
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.decide import NotFound, OutOfReach, Polling, Seen, Sighting, decide
from bot.domain.models import Thread
from bot.errors import (
    JobApiError,
    JobApiNotAllowed,
    JobApiUnreachable,
    JobApiUnreadable,
    JobGone,
    StoreError,
    StoreUnavailable,
)
from bot.loops.loop import Loop, Terms
from bot.ports import JobApi, Polled, Store, Transaction

logger = logging.getLogger(__name__)

GATHER = 0.2
"""Seconds over which results are gathered into one transaction: one commit then serves many polls."""


@dataclass(frozen=True)
class Due:
    """A job to poll. `now` is the store's time when it was claimed."""

    thread: Thread
    now: float


class Watch(Loop[Due]):
    """Polls jobs that are due. `gather` is in seconds."""

    def __init__(
        self,
        store: Store,
        job_api: JobApi,
        terms: Terms,
        *,
        polling: Polling,
        at_once: int = 50,
        gather: float = GATHER,
    ) -> None:
        super().__init__(store, terms, at_once=at_once)
        self._job_api = job_api
        self._polling = polling
        self._gather = gather
        self._gathered: list[tuple[Polled, asyncio.Future[None]]] = []
        self._saving = set[asyncio.Task[None]]()

    async def stop(self, patience: float) -> None:
        """Ends what is being saved, too, where that takes longer than `patience`."""
        await super().stop(patience)
        saving = tuple(self._saving)
        for task in saving:
            task.cancel()
        await asyncio.gather(*saving, return_exceptions=True)

    async def take(self, limit: int) -> Sequence[Due]:
        """Claims watches that are due."""

        async def claim(tx: Transaction) -> list[Due]:
            claimed = await tx.claim_watches(self._owner, lease=self._lease, limit=limit)
            return [Due(watch.thread, tx.now) for watch in claimed]

        return await self._store.transact(claim)

    async def work(self, item: Due, taken_at: float) -> None:
        """Polls one job. When the process was paused for too long, the claim is left to run out."""
        if not self.in_time(taken_at):
            return
        seen = await self._look(item.thread)
        now = item.now + self._now() - taken_at
        jitter = random.random()  # noqa: S311 - spreads polls, guards nothing
        decision = decide(item.thread.known, seen, now, self._polling, jitter=jitter)
        polled = Polled(item.thread, decision.known, decision.sayings, decision.card_changed, decision.next_in)
        await self._save(polled)

    async def _look(self, thread: Thread) -> Sighting:
        if thread.known.job is None:
            return NotFound()
        try:
            job = await self._job_api.get(thread.project_id, thread.known.job.id)
        except JobApiError as error:
            if thread.known.out_since is None:
                logger.info("job %s can't be read, and is tried on: %s", thread.known.job.id, error)
            return self._failure(error)
        self.went_well()
        return Seen(job)

    def _failure(self, error: JobApiError) -> Sighting:
        match error:
            case JobGone():
                self.went_well()
                return NotFound()
            case JobApiNotAllowed():
                self.went_wrong(error)
                return OutOfReach("does not let Pagehand in", status=error.status)
            case JobApiUnreachable():
                self.went_wrong(error, again_in=error.retry_after)
                return OutOfReach("can't be reached", retry_after=error.retry_after)
            case JobApiUnreadable():
                self.went_wrong(error, one_piece=True)
                return OutOfReach("gives answers that make no sense")
            case _:
                self.went_wrong(error, one_piece=True)
                return OutOfReach("does not answer properly")

    async def _save(self, polled: Polled) -> None:
        """Saves a result together with those of the others that come in at the same time."""
        saved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._gathered.append((polled, saved))
        if len(self._gathered) == 1:
            task = asyncio.create_task(self._save_gathered())
            self._saving.add(task)
            task.add_done_callback(self._saving.discard)
        await saved

    async def _save_gathered(self) -> None:
        await asyncio.sleep(self._gather)
        gathered, self._gathered = self._gathered, []
        polls = [polled for polled, _ in gathered]
        try:
            await self._save_all(polls)
        finally:
            for _, saved in gathered:
                if not saved.done():
                    saved.set_result(None)
        if any(polled.sayings or polled.card_changed for polled in polls):
            self._terms.recorded()

    async def _save_all(self, polls: Sequence[Polled]) -> None:
        """Saves results; each by itself where they can't be saved together, so that a bad one holds back no other.

        Nothing is lost of what can't be saved: the claims run out, and the jobs are polled again.
        """
        try:
            await self._store.transact(lambda tx: tx.save_polls(polls, self._owner))
        except StoreUnavailable as error:
            self.went_wrong(error)
        except Exception as fault:  # noqa: BLE001 - a fault of ours in one result is no reason to lose the others
            if len(polls) > 1:
                for polled in polls:
                    await self._save_all([polled])
                return
            why = fault if isinstance(fault, StoreError) else type(fault).__name__
            logger.error("the poll of thread %s can't be saved: %s", polls[0].thread.id, why)  # noqa: TRY400 - a traceback could quote the row
            self.went_wrong(why, one_piece=True)
