"""The job poller: reads each job when it is due, decides what to do, and records state and notices together.

A poll without consequences is remembered: the same result again needs neither the thread nor a decision. Forgetting it
costs a decision and changes nothing.
"""

import asyncio
import contextlib
import hashlib
import json
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bot import __version__, errors
from bot.domain.delivery import PostModes, everything
from bot.domain.jobs import observe
from bot.domain.jobs.job import Problem
from bot.domain.jobs.outages import JobApiUnavailable
from bot.domain.jobs.poll_pace import Polling, PollPace, pace_of
from bot.domain.projects import PostMode
from bot.domain.threads.thread import Thread
from bot.jobapi.models import SeenJob
from bot.ports.job_api import JobApi
from bot.runtime.logging import NO_CONTEXT, LogContext, log_context
from bot.runtime.tasks import BackgroundTasks
from bot.scheduler.worker import DueWork, JobApiWorker, Step, WorkerSettings, about_job, job_words, unavailable
from bot.store.store import Store, Transaction
from bot.store.threads import ClaimedPoll, PollResult, UnchangedPoll


class KnownLook(NamedTuple):
    """A poll without consequences while the thread has the same revision, and the job's polling then."""

    fingerprint: bytes
    pace: PollPace


class PollMemory:
    """What is remembered of polls without consequences: JSON that begins with what makes it so besides the job API's
    answer, which is Pagehand's version, the settings and the thread's revision. If the answers always differ, though
    without consequences, nothing follows, because remembering them would cost more than it saves.
    """

    def __init__(self, polling: Polling, posts: PostModes) -> None:
        self._posts = posts
        self._rules = {mode: _digest(f"{__version__} {polling.for_posts(mode)}") for mode in PostMode}

    def knows(self, poll: ClaimedPoll) -> bool:
        """Returns whether a look at the job may be enough."""
        return poll.seen is not None and poll.seen.startswith(self._begin(poll) + '"')

    @staticmethod
    def look(poll: ClaimedPoll) -> KnownLook | None:
        """Returns what is remembered of the poll before, if the thread was not read because of it."""
        if poll.seen is None or poll.thread is not None:
            return None
        try:
            _, _, fingerprint, *pace = json.loads(poll.seen)
            return KnownLook(bytes.fromhex(fingerprint), PollPace(*pace))
        except (ValueError, TypeError):
            return None

    def after(self, poll: ClaimedPoll, look: KnownLook) -> str:
        """Returns what to remember of a poll without consequences."""
        begin = self._begin(poll)
        if poll.seen is not None and poll.seen.startswith(begin):
            return f"{begin}null]"
        return f'{begin}"{look.fingerprint.hex()}", {json.dumps(look.pace)[1:]}'

    def _begin(self, poll: ClaimedPoll) -> str:
        return f'["{self._rules[self._posts(poll.channel_id)]}", {poll.revision}, '


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


logger = logging.getLogger(__name__)

BATCH_WINDOW = 0.2
"""Seconds over which results are collected for one transaction, so that one commit serves many polls."""
MOST_AT_ONCE = 100
"""Polls that one transaction claims or saves; other work can run in between. It waits for the interpreter about as
often with fewer.
"""
MOST_READ = 10
"""Threads that one transaction reads, because nothing else runs while they are parsed."""
SPREAD = 0.25
"""Seconds over which the polls of one claim begin."""
MANY = 25
"""The size of a claim from which jobs are claimed every SPREAD seconds."""
AHEAD = 4
"""Times the concurrency: polls that may be claimed ahead, because a claim takes as long as many polls."""
MAX_UNSAVED = 2_000
"""Polls in progress or waiting to be saved; beyond that, no more begin until some are saved."""


@dataclass(frozen=True)
class DuePoll:
    """A job to poll. `now` is the store's time when it was claimed."""

    poll: ClaimedPoll
    now: float


class JobPoller(JobApiWorker[DuePoll]):
    """Polls due jobs. `batch_window` is in seconds; at most `max_unsaved` polls are unsaved at any time; `posts`
    returns which posts a channel wants.
    """

    name = "job poller"

    def __init__(
        self,
        store: Store,
        job_api: JobApi,
        settings: WorkerSettings,
        *,
        polling: Polling,
        concurrency: int = 50,
        batch_window: float = BATCH_WINDOW,
        max_unsaved: int = MAX_UNSAVED,
        posts: PostModes = everything,
    ) -> None:
        super().__init__(store, settings, concurrency=concurrency)
        self._job_api = job_api
        self._polling = polling
        self._posts = posts
        self._memory = PollMemory(polling, posts)
        self._batch_window = batch_window
        self._max_unsaved = max_unsaved
        self._waiting = deque[tuple[DuePoll, float]]()
        """What is claimed and not begun, with the time of the claim."""
        self._spreading = False
        """Whether polls begin by and by."""
        self._batch: list[PollResult | UnchangedPoll] = []
        self._unsaved = 0
        """Results that are collected or being saved."""
        self._last_batch = 0
        """How many were last saved together."""
        self._saves = BackgroundTasks()
        self._saving: asyncio.Task[None] | None = None
        self._save_now = asyncio.Event()

    def free_slots(self) -> int:
        """Returns how many more jobs can be claimed now: as many ahead as were polled within the last batch window, so
        that no poll waits for a claim, many at a time. A result takes no slot, within a bound on everything unsaved.
        """
        lately = max(self._unsaved, self._last_batch)
        claimed, ahead = len(self._waiting) + len(self._tasks), min(lately, AHEAD * self._concurrency)
        free = min(self._concurrency + ahead, self._max_unsaved - self._unsaved, claimed + MOST_AT_ONCE) - claimed
        return free if claimed < self._concurrency or free >= self._concurrency // 2 else 0

    async def stop(self, timeout: float) -> None:  # noqa: ASYNC109 - what is late is cancelled, not the caller
        """Stops like every worker, and saves collected results at once; cancels late saves, too."""
        self._save_now.set()
        end = asyncio.get_running_loop().time() + timeout
        await super().stop(timeout)
        await self._saves.drain(end - asyncio.get_running_loop().time())

    async def claim(self, limit: int) -> Sequence[DuePoll]:
        """Claims due polls, in transactions that each read a few threads."""
        claimed: list[DuePoll] = []

        async def work(tx: Transaction) -> list[DuePoll]:
            left, known = limit - len(claimed), self._memory.knows
            polls = await tx.polls.claim(self._owner, lease=self._lease, limit=left, known=known, most_read=MOST_READ)
            return [DuePoll(poll, tx.now) for poll in polls]

        while True:
            some = await self._store.transact(work)
            claimed.extend(some)
            if len(claimed) >= limit or sum(due.poll.thread is not None for due in some) < MOST_READ:
                return claimed

    def claim_interval(self, claimed: int) -> float:
        """Returns how long to wait before the next claim: less while there is much to do, which spreads it better."""
        usual = super().claim_interval(claimed)
        return min(SPREAD, usual) if claimed >= MANY else usual

    async def begin(self, items: Sequence[DuePoll], claimed_at: float, *, free: int) -> None:
        """Begins polls one by one over the time to the next claim, so that everything else on the loop, such as an
        acknowledgement, waits for one of them and not for all. If there may be more, they begin as soon as they can.
        """
        self._waiting.extend((item, claimed_at) for item in items)
        self._spreading = len(items) < free
        for _ in items if self._spreading else ():
            if self._stopping:
                return
            self._begin_next()
            await asyncio.sleep(SPREAD / max(len(items), MANY))
        self._spreading = False
        self._begin_next()

    def _begin_next(self) -> None:
        if self._waiting and not self._stopping and len(self._tasks) < self._concurrency:
            task = self._tasks.spawn(self._poll_waiting(), name="JobPoller item")
            task.add_done_callback(lambda _: self._wake_if_slots_are_free())

    async def _poll_waiting(self) -> None:
        """Polls what waits, one after the other, unless polls begin by and by. If the process stops, the rest of the
        claims are released, as all are, or expire.
        """
        if not self._spreading:
            self._begin_next()  # beside it, after whatever else waits for the loop
        while self._waiting and not self._stopping:
            item, claimed_at = self._waiting.popleft()
            self._wake_if_slots_are_free()
            await self._guarded(item, self._poll_item(item, claimed_at))
            if self._spreading:
                return

    def subject(self, item: DuePoll) -> LogContext:
        """See Worker."""
        return about_job(item.poll.job_id or "", item.poll.thread_id)

    async def process(self, item: DuePoll, claimed_at: float) -> None:
        """Polls one job, and waits until that is saved."""
        if (saving := await self._poll_item(item, claimed_at)) is not None:
            await asyncio.wait({saving})

    async def _poll_item(self, item: DuePoll, claimed_at: float) -> asyncio.Task[None] | None:
        """Polls one job; returns what saves the result. If the process was paused for too long, the claim is left to
        expire.
        """
        if not self.lease_covers_call(claimed_at):
            return None
        return self._save(await self._poll(item.poll, item.now - claimed_at))

    async def _poll(self, poll: ClaimedPoll, ahead: float) -> PollResult | UnchangedPoll:
        """Polls a job. `ahead`: the seconds by which the store's clock is ahead of ours."""
        known = self._memory.look(poll)
        look = await self._look(poll, unless=known.fingerprint if known else b"")
        if look is None and known is not None:
            next_poll_in = known.pace.next_poll_in(self._monotonic() + ahead, self._polling, jitter=self._random())
            return UnchangedPoll(poll.thread_id, poll.revision, next_poll_in, poll.seen)
        thread = poll.thread or await self._store.transact(lambda tx: tx.polls.thread(poll))
        if thread is None:  # it has changed since it was claimed, which saving notices, too; or it cannot be read
            return UnchangedPoll(poll.thread_id, poll.revision, 0.0)
        return self._result(poll, thread, look, ahead)

    async def _look(self, poll: ClaimedPoll, *, unless: bytes) -> SeenJob | errors.JobApiError | None:
        if poll.job_id is None:
            return None
        try:
            seen = await self._job_api.look(poll.project, poll.job_id, unless=unless)
        except errors.JobApiError as error:
            return error
        self.record_answer(poll.project)
        return seen

    def _result(
        self, poll: ClaimedPoll, thread: Thread, look: SeenJob | errors.JobApiError | None, ahead: float
    ) -> PollResult:
        """Decides the consequences of a poll. None: there is no job to poll."""
        now, seen = self._monotonic() + ahead, self._observation(thread, look)
        polling = self._polling.for_posts(self._posts(thread.channel_id))
        state, jitter, pace = thread.state, self._random(), pace_of(thread.state)
        if (
            isinstance(look, SeenJob)
            and isinstance(seen, observe.JobObserved)
            and pace is not None
            and observe.never_has_consequences(state, seen, now, polling)
        ):
            remembered = self._memory.after(poll, KnownLook(look.fingerprint, pace))
            next_poll_in = pace.next_poll_in(now, polling, jitter=jitter)
            return PollResult(thread, state, (), card_changed=False, next_poll_in=next_poll_in, seen=remembered)
        decision = observe.decide(state, seen, now, polling, jitter=jitter)
        return PollResult(thread, decision.state, decision.notices, decision.card_changed, decision.next_poll_in)

    def _observation(self, thread: Thread, look: SeenJob | errors.JobApiError | None) -> observe.Observation:
        match look:
            case SeenJob(job):
                return observe.JobObserved(job)
            case None:
                return observe.JobNotFound()
            case _:
                if thread.state.failure.outage_since is None and thread.state.job is not None:
                    logger.info("the job cannot be read, and is tried again: %s", look)
                return self._failure(thread.project, look)

    def _failure(self, project: str, error: errors.JobApiError) -> observe.Observation:
        match error:
            case errors.JobGone():
                self.record_answer(project)
                return observe.JobNotFound()
            case errors.NoSuchProject():  # the project is missing from the settings, and may come back
                return JobApiUnavailable("is not in Pagehand's settings any more")
            case errors.JobApiNotAllowed():
                self.record_no_answer(project, error)
                return unavailable(error)
            case errors.JobApiUnreachable():
                self.record_no_answer(project, error, retry_after=error.retry_after)
                return unavailable(error)
            case errors.JobApiUnreadable():
                self.record_no_answer(project, error)
                return JobApiUnavailable("gives answers that make no sense", problem=Problem.FAULTY, words=error.words)
            case _:
                self.record_no_answer(project, error)
                return JobApiUnavailable("does not answer properly", problem=Problem.FAULTY, words=error.words)

    def _save(self, polled: PollResult | UnchangedPoll) -> asyncio.Task[None]:
        """Has a result saved together with others that arrive at the same time."""
        self._batch.append(polled)
        self._unsaved += 1
        if self._saving is None:
            self._saving = self._saves.spawn(self._save_batch(), name="JobPoller save")
        return self._saving

    async def _save_batch(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._save_now.wait(), self._batch_window)
        polls, self._batch, self._saving = self._batch, [], None
        self._last_batch = len(polls)
        try:
            with log_context(NO_CONTEXT):  # it began with the first of these polls, and is about them all
                for start in range(0, len(polls), MOST_AT_ONCE):
                    await self._save_all(polls[start : start + MOST_AT_ONCE])
        finally:
            self._unsaved -= len(polls)
            self._wake_if_slots_are_free()
        if any(isinstance(polled, PollResult) and (polled.notices or polled.card_changed) for polled in polls):
            self._settings.on_commit(frozenset({DueWork.DELIVER}))

    async def _save_all(self, polls: Sequence[PollResult | UnchangedPoll]) -> None:
        """Saves results; separately if they cannot be saved together, so that a bad one does not block the
        others. Nothing is lost when saving fails: the claims expire, and the jobs are polled again.
        """
        try:
            await self._store.transact(lambda tx: tx.polls.save(polls, self._owner))
        except errors.StoreUnavailable as error:
            self.fails(Step.RECORD, error)
        except Exception as error:  # noqa: BLE001 - a fault of ours in one result is no reason to lose the others
            if len(polls) > 1:
                for polled in polls:
                    await self._save_all([polled])
                return
            reason = error if isinstance(error, errors.StoreError) else type(error).__name__
            logger.error("the poll of thread %s cannot be saved: %s", polls[0].thread_id, reason)  # noqa: TRY400 - a traceback could quote the row
            self.item_failed(reason)
        else:
            _log_ends(polls)
            self.works(Step.RECORD)
            self.works(None)


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
