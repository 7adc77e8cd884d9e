"""The job poller: reads each job when it is due, decides what to do, and records state and notices together."""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain.jobs.job import Problem
from bot.domain.jobs.observe import (
    JobApiUnavailable,
    JobNotFound,
    JobObserved,
    Observation,
    decide,
    never_has_consequences,
)
from bot.domain.jobs.poll_pace import Polling, pace_of
from bot.domain.notification import PostModes, everything
from bot.domain.threads.thread import Thread
from bot.errors import (
    JobApiError,
    JobApiNotAllowed,
    JobApiUnreachable,
    JobApiUnreadable,
    JobGone,
    NoSuchProject,
    StoreError,
    StoreUnavailable,
)
from bot.jobapi.models import SeenJob
from bot.ports.job_api import JobReader
from bot.runtime.logging import NO_CONTEXT, LogContext, log_context
from bot.runtime.tasks import BackgroundTasks
from bot.scheduler.job_api_worker import JobApiWorker, job_words, unavailable
from bot.scheduler.poll_memory import KnownLook, PollMemory
from bot.scheduler.worker import DueWork, WorkerSettings, about, about_job
from bot.store.store import Store
from bot.store.threads import ClaimedPoll, KnownPoll, PollResult, Polls, UnchangedPoll

logger = logging.getLogger(__name__)

BATCH_WINDOW = 0.2
"""Seconds over which results are collected for one transaction, so that one commit serves many polls."""
MOST_AT_ONCE = 25
"""Results that one transaction saves; other work can run in between."""
MOST_READ = 10
"""Threads that one transaction reads, because nothing else runs while they are parsed."""
SPREAD = 0.25
"""Seconds over which the polls of one claim begin."""
MANY = 25
"""The size of a claim from which jobs are claimed every SPREAD seconds."""
MAX_UNSAVED = 1_000
"""Polls in progress or waiting to be saved; beyond that, no more begin until some are saved."""


@dataclass(frozen=True)
class DuePoll:
    """A job to poll. `now` is the store's time when it was claimed."""

    poll: ClaimedPoll | KnownPoll
    now: float


class JobPoller(JobApiWorker[DuePoll]):
    """Polls due jobs. `batch_window` is in seconds; at most `max_unsaved` polls are unsaved at any time; `memory` holds
    past polls; `posts` returns which posts a channel wants.
    """

    name = "job poller"

    def __init__(
        self,
        store: Store,
        job_api: JobReader,
        settings: WorkerSettings,
        *,
        polling: Polling,
        concurrency: int = 50,
        batch_window: float = BATCH_WINDOW,
        max_unsaved: int = MAX_UNSAVED,
        memory: PollMemory | None = None,
        posts: PostModes = everything,
    ) -> None:
        super().__init__(store, settings, concurrency=concurrency)
        self._job_api = job_api
        self._polling = polling
        self._posts = posts
        self._memory = PollMemory() if memory is None else memory
        self._batch_window = batch_window
        self._max_unsaved = max_unsaved
        self._batch: list[tuple[PollResult | UnchangedPoll, asyncio.Future[None]]] = []
        self._unsaved = 0
        self._saves = BackgroundTasks()
        self._save_now = asyncio.Event()

    def free_slots(self) -> int:
        """Returns how many more jobs can be polled now. A result that waits to be saved takes no slot, within a bound
        on everything unsaved.
        """
        return min(super().free_slots() + self._unsaved, self._max_unsaved - len(self._tasks))

    async def stop(self, timeout: float) -> None:  # noqa: ASYNC109 - what is late is cancelled, not the caller
        """Stops like every worker, and saves collected results at once; cancels late saves, too."""
        self._save_now.set()
        await super().stop(timeout)
        await self._saves.cancel()

    async def claim(self, limit: int) -> Sequence[DuePoll]:
        """Claims due polls, in transactions that each read a few threads."""
        claimed: list[DuePoll] = []
        while True:
            some = await self._store.transact(lambda tx: self._claim_some(tx.polls, tx.now, limit - len(claimed)))
            claimed.extend(some)
            if len(claimed) >= limit or sum(isinstance(due.poll, ClaimedPoll) for due in some) < MOST_READ:
                return claimed

    async def _claim_some(self, polls: Polls, now: float, limit: int) -> list[DuePoll]:
        claimed = await polls.claim(
            self._owner, lease=self._lease, limit=limit, known=self._memory, most_read=MOST_READ
        )
        return [DuePoll(poll, now) for poll in claimed]

    def claim_interval(self, claimed: int) -> float:
        """Returns how long to wait before the next claim: less while there is much to do, which spreads it better."""
        usual = super().claim_interval(claimed)
        return min(SPREAD, usual) if claimed >= MANY else usual

    async def begin(self, items: Sequence[DuePoll], claimed_at: float, *, free: int) -> None:
        """Begins polls one by one over the time to the next claim, so that everything else on the loop, such as an
        acknowledgement, waits for one of them and not for all. If there may be more, they begin as soon as they can.
        """
        gap = 0.0 if len(items) >= free else SPREAD / max(len(items), MANY)
        for item in items:
            if self._stopping:
                return  # the claim is released, as all are, or expires
            self.begin_one(item, claimed_at)
            await asyncio.sleep(gap)

    def subject(self, item: DuePoll) -> LogContext:
        """See Worker."""
        if isinstance(item.poll, ClaimedPoll):
            return about(item.poll.thread)
        return about_job(item.poll.job_id, item.poll.thread_id)

    async def process(self, item: DuePoll, claimed_at: float) -> None:
        """Polls one job. If the process was paused for too long, the claim is left to expire."""
        if not self.lease_covers_call(claimed_at):
            return
        ahead = item.now - claimed_at
        if isinstance(item.poll, ClaimedPoll):
            polled: PollResult | UnchangedPoll = await self._poll(item.poll.thread, ahead)
        else:
            polled = await self._poll_known(item.poll, ahead)
        await self._save(polled)

    async def _poll(self, thread: Thread, ahead: float) -> PollResult:
        """Polls a job. `ahead`: the seconds by which the store's clock is ahead of ours."""
        job = thread.state.job
        return self._result(thread, None if job is None else await self._look(thread.project, job.id), ahead)

    async def _poll_known(self, poll: KnownPoll, ahead: float) -> PollResult | UnchangedPoll:
        """The same as `_poll`, without reading the thread as long as nothing changes."""
        known = self._memory.get(poll.thread_id)
        look = await self._look(poll.project, poll.job_id, unless=known.fingerprint if known else b"")
        if look is None and known is not None:
            next_poll_in = known.pace.next_poll_in(self._monotonic() + ahead, self._polling, jitter=self._random())
            return UnchangedPoll(poll.thread_id, poll.revision, next_poll_in)
        thread = await self._store.transact(lambda tx: tx.polls.thread(poll))
        if thread is None:  # it has changed since it was claimed; saving notices that, too
            self._memory.forget(poll.thread_id)
            return UnchangedPoll(poll.thread_id, poll.revision, 0.0)
        return self._result(thread, look, ahead)

    async def _look(self, project: str, job_id: str, *, unless: bytes = b"") -> SeenJob | JobApiError | None:
        try:
            seen = await self._job_api.look(project, job_id, unless=unless)
        except JobApiError as error:
            return error
        self.record_answer(project)
        return seen

    def _result(self, thread: Thread, look: SeenJob | JobApiError | None, ahead: float) -> PollResult:
        """Decides the consequences of a poll. None: there is no job to poll."""
        now, seen = self._monotonic() + ahead, self._observation(thread, look)
        polling = self._polling.for_posts(self._posts(thread.channel_id))
        state, jitter, pace = thread.state, self._random(), pace_of(thread.state)
        if (
            isinstance(look, SeenJob)
            and isinstance(seen, JobObserved)
            and pace is not None
            and never_has_consequences(state, seen, now, polling)
        ):
            self._memory.remember(thread.id, KnownLook(thread.revision, look.fingerprint, pace))
            next_poll_in = pace.next_poll_in(now, polling, jitter=jitter)
            return PollResult(thread, state, (), card_changed=False, next_poll_in=next_poll_in)
        self._memory.forget(thread.id)
        decision = decide(state, seen, now, polling, jitter=jitter)
        return PollResult(thread, decision.state, decision.notices, decision.card_changed, decision.next_poll_in)

    def _observation(self, thread: Thread, look: SeenJob | JobApiError | None) -> Observation:
        match look:
            case SeenJob(job):
                return JobObserved(job)
            case None:
                return JobNotFound()
            case _:
                if thread.state.failure.outage_since is None and thread.state.job is not None:
                    logger.info("the job cannot be read, and is tried again: %s", look)
                return self._failure(thread.project, look)

    def _failure(self, project: str, error: JobApiError) -> Observation:
        match error:
            case JobGone():
                self.record_answer(project)
                return JobNotFound()
            case NoSuchProject():  # the project is missing from the settings, and may come back
                return JobApiUnavailable("is not in Pagehand's settings any more")
            case JobApiNotAllowed():
                self.record_no_answer(project, error)
                return unavailable(error)
            case JobApiUnreachable():
                self.record_no_answer(project, error, retry_after=error.retry_after)
                return unavailable(error)
            case JobApiUnreadable():
                self.record_no_answer(project, error)
                return JobApiUnavailable("gives answers that make no sense", problem=Problem.FAULTY, words=error.words)
            case _:
                self.record_no_answer(project, error)
                return JobApiUnavailable("does not answer properly", problem=Problem.FAULTY, words=error.words)

    async def _save(self, polled: PollResult | UnchangedPoll) -> None:
        """Saves a result together with others that arrive at the same time."""
        saved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._batch.append((polled, saved))
        if len(self._batch) == 1:
            self._saves.spawn(self._save_batch(), name="JobPoller save")
        self._unsaved += 1
        self._wake_if_slots_are_free()
        try:
            await saved
        finally:
            self._unsaved -= 1

    async def _save_batch(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._save_now.wait(), self._batch_window)
        batch, self._batch = self._batch, []
        polls = [polled for polled, _ in batch]
        try:
            with log_context(NO_CONTEXT):  # it began with the first of these polls, and is about them all
                for start in range(0, len(polls), MOST_AT_ONCE):
                    await self._save_all(polls[start : start + MOST_AT_ONCE])
        finally:
            for _, saved in batch:
                if not saved.done():
                    saved.set_result(None)
        if any(isinstance(polled, PollResult) and (polled.notices or polled.card_changed) for polled in polls):
            self._settings.on_commit(frozenset({DueWork.DELIVER}))

    async def _save_all(self, polls: Sequence[PollResult | UnchangedPoll]) -> None:
        """Saves results; separately if they cannot be saved together, so that a bad one does not block the
        others. Nothing is lost when saving fails: the claims expire, and the jobs are polled again.
        """
        try:
            await self._store.transact(lambda tx: tx.polls.save(polls, self._owner))
        except StoreUnavailable as error:
            self.recording_failed(error)
        except Exception as error:  # noqa: BLE001 - a fault of ours in one result is no reason to lose the others
            if len(polls) > 1:
                for polled in polls:
                    await self._save_all([polled])
                return
            reason = error if isinstance(error, StoreError) else type(error).__name__
            logger.error("the poll of thread %s cannot be saved: %s", polls[0].thread_id, reason)  # noqa: TRY400 - a traceback could quote the row
            self.item_failed(reason)
        else:
            _log_ends(polls)
            self.recording_succeeded()
            self.item_succeeded()


def _log_ends(polls: Sequence[PollResult | UnchangedPoll]) -> None:
    """Logs each job that has ended since its last poll, or got its link after its end."""
    for polled in polls:
        if not isinstance(polled, PollResult):
            continue
        before, job = polled.thread.state.job, polled.state.job
        if job is None or not job.ended:
            continue
        if before is None or (before.status, before.pr_link) != (job.status, job.pr_link):
            with log_context(about_job(job.id, polled.thread_id)):
                logger.info("job ended: %s", job_words(job))
