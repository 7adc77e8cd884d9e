"""The base of the scheduler's workers: they claim what is due, process it concurrently, and wait to be woken. Those
that call Slack or a job API tell its failures from their own.
"""

import asyncio
import contextlib
import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum, auto
from http import HTTPStatus
from typing import Generic, TypeVar

from bot import errors
from bot.domain.jobs.job import Problem
from bot.domain.jobs.outages import JobApiUnavailable
from bot.domain.requests.request import log_id
from bot.domain.threads.thread import Thread
from bot.jobapi.models import Job
from bot.runtime.backoff import Backoff
from bot.runtime.clock import Clock
from bot.runtime.health import RECOVERY_SECONDS, SERVICE_RECOVERY_SECONDS, ComponentStatus, Outage
from bot.runtime.logging import NO_CONTEXT, LogContext, log_context
from bot.runtime.tasks import BackgroundTasks
from bot.scheduler.settings import SchedulerVariables
from bot.store.store import Store, Transaction

logger = logging.getLogger(__name__)


class DueWork(StrEnum):
    """Kinds of due work, one for each worker. Only the workers for what a commit leaves are woken, because an empty
    claim is a transaction, too. Anything else is found within the claim interval.
    """

    PREPARE = "prepare"
    UPLOAD = "upload"
    SEND = "send"
    DELIVER = "deliver"


NOTHING: frozenset[DueWork] = frozenset()
ANYTHING = frozenset({DueWork.PREPARE, DueWork.SEND, DueWork.DELIVER})
"""Only preparing leaves files to upload."""


Item = TypeVar("Item")
Answer = TypeVar("Answer")

RECORD_RETRY = 1.0
"""Seconds before recording a result is tried again."""
MIN_CLAIM_INTERVAL = 0.02
"""Minimum seconds between claims that found everything: what is recorded meanwhile is claimed together,
because each claim costs a transaction.
"""


def about(thread: Thread, request: str = "") -> LogContext:
    """Returns the log context of work on a thread. `request` is an id for the log; by default that of the request that
    asked for the job.
    """
    return about_job(thread.state.job.id if thread.state.job else "", thread.id, request)


def about_job(job_id: str, thread_id: str, request: str = "") -> LogContext:
    """See `about`."""
    return LogContext(request or log_id(thread_id), job_id, thread_id)  # a start has the id of its thread


@dataclass(frozen=True)
class WorkerSettings:
    """A worker's settings. Times are in seconds.

    Attributes:
        owner: This process's name in the database, different after each start.
        clock: Returns the time, including pauses of the process.
        lease: How long nobody else can claim what was claimed.
        call_timeout: The longest that one remote call takes; shorter than `lease`.
        on_commit: Called after each commit, with the work that it may have left.
        claim_interval: How long a worker that found nothing waits before it claims again, unless it is woken.
        variables: What the environment says.
        recovery: How long calls have to succeed before an outage is over.
        outages: Those of Slack and the job APIs, by their names; shared by all workers of a process.
        random: Returns a random number from 0 to 1, to spread polls and retries and to take turns.
    """

    owner: str
    clock: Clock
    lease: float
    call_timeout: float
    on_commit: Callable[[frozenset[DueWork]], None]
    claim_interval: float = 0.5
    variables: SchedulerVariables = field(default_factory=SchedulerVariables)
    recovery: float = RECOVERY_SECONDS
    outages: dict[str, Outage] = field(default_factory=dict)
    random: Callable[[], float] = random.random

    def outage_of(self, service: str) -> Outage:
        """Returns the outages of Slack or a job API."""
        if service not in self.outages:
            recovery, levels = min(self.recovery, SERVICE_RECOVERY_SECONDS), (logging.WARNING, logging.INFO)
            self.outages[service] = Outage(service, self.clock.monotonic, recovery=recovery, levels=levels)
        return self.outages[service]


class Step(Enum):
    """A step of a worker's work that can fail. Only the same step can show that it works again: what cannot be recorded
    may still be claimed.
    """

    CLAIM = auto()
    PROCESS = auto()
    RECORD = auto()


class Worker(ABC, Generic[Item]):
    """Claims items as they fall due, at most `at_once` in one claim, and processes at most `concurrency` at a time.
    `name` is its name in the health.
    """

    name: str

    def __init__(self, store: Store, settings: WorkerSettings, *, concurrency: int, at_once: int | None = None) -> None:
        self._store = store
        self._settings = settings
        self._owner = settings.owner
        self._lease = settings.lease
        self._random = settings.random
        self._concurrency = concurrency
        self._at_once = concurrency if at_once is None else at_once
        self._woken = asyncio.Event()
        self._may_be_more = True
        """Whether the last claim may have left something for lack of free slots."""
        self._stopping = False
        self._running: asyncio.Task[None] | None = None
        self._tasks = BackgroundTasks()
        self._outage = Outage(type(self).__name__, self._monotonic, recovery=settings.recovery)
        self._failing_step: Step | None = None

    @abstractmethod
    async def claim(self, limit: int) -> Sequence[Item]:
        """Claims at most `limit` items that are due."""

    def subject(self, item: Item) -> LogContext:  # noqa: ARG002 - others look at it
        """Returns what log lines are about while an item is processed."""
        return NO_CONTEXT

    @abstractmethod
    async def process(self, item: Item, claimed_at: float) -> None:
        """Processes one item. `claimed_at` is the monotonic time just before it was claimed."""

    def wake(self) -> None:
        """Makes it claim now, because something may be due."""
        self._woken.set()

    def free_slots(self) -> int:
        """Returns how many more items can be claimed now."""
        return min(self._concurrency - len(self._tasks), self._at_once)

    def claim_interval(self, claimed: int) -> float:  # noqa: ARG002 - others look at it
        """Returns how long to wait before the next claim, unless woken, after one that found this many."""
        return self._settings.claim_interval

    async def begin(self, items: Sequence[Item], claimed_at: float, *, free: int) -> None:  # noqa: ARG002 - the same
        """Begins to process what was claimed for `free` slots."""
        for item in items:
            self.begin_one(item, claimed_at)

    def begin_one(self, item: Item, claimed_at: float) -> None:
        """Begins to process one item, in a task."""
        work = self._guarded(item, self.process(item, claimed_at))
        task = self._tasks.spawn(work, name=f"{type(self).__name__} item")
        task.add_done_callback(lambda _: self._wake_if_slots_are_free())

    async def run(self) -> None:
        """Works until `stop`."""
        self._running = asyncio.current_task()
        while not self._stopping:
            self._woken.clear()
            free, begun = self.free_slots(), asyncio.get_running_loop().time()
            claimed = await self._claim_and_process(free) if free > 0 else 0
            self._may_be_more = claimed >= free
            if claimed == 0 or not self._may_be_more:
                await self._wait(begun + MIN_CLAIM_INTERVAL, begun + self.claim_interval(claimed))

    async def stop(self, timeout: float) -> None:  # noqa: ASYNC109 - what is late is cancelled, not the caller
        """Claims nothing more, gives running work `timeout` seconds to end, then cancels it."""
        self._stopping = True
        self.wake()
        end = asyncio.get_running_loop().time() + timeout
        if self._running is not None:  # it may be claiming, and then process what it claims
            await asyncio.wait({self._running}, timeout=timeout)
        await self._tasks.drain(end - asyncio.get_running_loop().time())

    def lease_covers_call(self, claimed_at: float) -> bool:
        """Returns whether a remote call that begins now would end before others may claim the item: not after a long
        pause.
        """
        return self._monotonic() + self._settings.call_timeout <= claimed_at + self._lease

    async def record(
        self, work: Callable[[Transaction], Awaitable[None]], *, leaves: frozenset[DueWork] = ANYTHING
    ) -> None:
        """Records the result of a remote call, however long the store is unavailable: it must be neither lost nor
        repeated. Then wakes the workers that have work: the less the commit `leaves`, the fewer claims are empty.
        """
        while True:
            try:
                await self._store.transact(work)
                break
            except errors.StoreUnavailable as error:
                self.fails(Step.RECORD, error)
                await asyncio.sleep(RECORD_RETRY)
        self.works(Step.RECORD)
        if leaves:
            self._settings.on_commit(leaves)

    def works(self, step: Step | None) -> None:
        """Records that a step works again."""
        if self._failing_step is step:
            self._outage.record_success()

    def fails(self, step: Step, reason: object) -> None:
        """Records that a step fails."""
        self._failing_step = step
        self._outage.record_failure(reason)

    def item_failed(self, reason: object) -> None:
        """Records that an item failed for a reason of its own, until `works(None)`. Others may do well, so this is no
        outage to log.
        """
        self._failing_step = None
        self._outage.record_failure(reason, quiet=True)

    def end_outages(self) -> None:
        """Ends outages that are over: its own, and those of the services."""
        for outage in (self._outage, *self._settings.outages.values()):
            outage.end_if_over()

    def status(self) -> ComponentStatus:
        """Returns whether the worker makes progress."""
        return self._outage.status(self.name)

    async def _claim_and_process(self, limit: int) -> int:
        claimed_at = self._monotonic()
        try:
            items = await self.claim(limit)
        except errors.StoreError as error:
            self.fails(Step.CLAIM, error)
            return 0
        except Exception as error:
            # A bug must not end the worker: nobody would notice, and no more work would be done.
            logger.exception("%s: cannot claim work", type(self).__name__)
            self.fails(Step.CLAIM, type(error).__name__)
            return 0
        self.works(Step.CLAIM)
        self.end_outages()
        await self.begin(items, claimed_at, free=limit)
        return len(items)

    async def _guarded(self, item: Item, work: Awaitable[object]) -> None:
        with log_context(self.subject(item)):
            try:
                await work
                self.works(Step.PROCESS)
            except errors.StoreError as error:
                self.fails(Step.PROCESS, error)
            except Exception:
                # A bug in one item must not stop the others; its lease expires, and it is tried again.
                logger.exception("%s: an item could not be processed", type(self).__name__)

    def _monotonic(self) -> float:
        return self._settings.clock.monotonic()

    def _wake_if_slots_are_free(self) -> None:
        """Claims the next items, if there are any, several at once, because each claim costs a transaction."""
        if self._may_be_more and self.free_slots() >= max(self._at_once // 4, 1):
            self.wake()

    async def _wait(self, not_before: float, until: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._woken.wait()
        pause = not_before - asyncio.get_running_loop().time()
        if pause > 0 and not self._stopping:
            await asyncio.sleep(pause)


class SlackWorker(Worker[Item]):
    """A worker that calls Slack, and tells its own failures from Slack's. Its status in the health shows both."""

    def __init__(self, store: Store, settings: WorkerSettings, *, concurrency: int, at_once: int | None = None) -> None:
        super().__init__(store, settings, concurrency=concurrency, at_once=at_once)
        self._slack = settings.outage_of("Slack")

    def record_answer(self) -> None:
        """Records that Slack answers."""
        self._slack.record_success(by=self.name)

    def record_no_answer(self, error: errors.ChatError) -> None:
        """Records that Slack fails or cannot be reached, unless it only asks to wait."""
        if error.is_failure:
            self._slack.record_failure(error, by=self.name)

    def status(self) -> ComponentStatus:
        """Returns whether the worker makes progress."""
        return max(super().status(), self._slack.status(self.name, by=self.name), key=ComponentStatus.severity)

    async def bounded(self, call: Awaitable[Answer]) -> Answer:
        """Awaits a call of Slack, for as long as one may take. Raises ChatError."""
        return await in_time(call, self._settings.call_timeout)


MAX_TRIES = 14
"""How often Slack is asked about a request in vain; with BACKOFF, that takes about ten minutes."""
BACKOFF = Backoff(first=2.0, longest=60.0, spread=(0.75, 1.25))


def retry_delay(attempts: int, failure: errors.ChatError, *, jitter: float) -> float:
    """Returns the seconds until the next attempt, given their number. `jitter` is a random number from 0 to 1."""
    return max(BACKOFF.delay(attempts, jitter=jitter), failure.retry_after or 0.0)


async def in_time(asked: Awaitable[Answer], seconds: float) -> Answer:
    """Returns Slack's answer. Raises ChatError, also if there is none within so many seconds."""
    try:
        async with asyncio.timeout(seconds):
            return await asked
    except TimeoutError:
        raise errors.ChatUncertain("no answer in time") from None


async def answer_or_none(asked: Awaitable[Answer]) -> Answer | None:
    """Returns Slack's answer; None if Slack permanently refuses to give one. Raises ChatError."""
    try:
        return await asked
    except (errors.ChatRejected, errors.ChatNotInChannel):
        return None


def unavailable(error: errors.JobApiUnreachable | errors.JobApiNotAllowed) -> JobApiUnavailable:
    """Returns what a failed call of the job API means for a thread."""
    match error:
        case errors.JobApiNotAllowed():
            return JobApiUnavailable("does not let Pagehand in", status=error.status)
        case errors.JobApiBusy():
            limited = error.status == HTTPStatus.TOO_MANY_REQUESTS
            problem = Problem.RATE_LIMITED if limited else Problem.BUSY
            return JobApiUnavailable("asks to wait", retry_after=error.retry_after, problem=problem, words=error.words)
        case errors.NotTheJobApi():
            return JobApiUnavailable("is not what answers", problem=Problem.FAULTY)
        case errors.JobApiUnreachable():
            return JobApiUnavailable("cannot be reached", retry_after=error.retry_after)


def job_words(job: Job | None) -> str:
    """Returns a job's status and link, for the log."""
    return " ".join(part for part in (job.status, job.pr_link) if part) if job else "unknown"


NOT_ALLOWED_RETRY = 60.0
"""Seconds before a request is sent again after the job API rejected our key, so that somebody can fix that."""


class JobApiWorker(Worker[Item]):
    """Distinguishes working job APIs from failing ones: an outage of one affects neither the worker nor the others.
    They are identified by the names of their projects.
    """

    def record_answer(self, project: str) -> None:
        """Records that a project's job API answers."""
        self._outage_of(project).record_success(by=self.name)

    def record_no_answer(self, project: str, reason: object, *, retry_after: float | None = None) -> None:
        """Records that a project's job API fails or cannot be reached; `retry_after`: seconds that it asks to wait."""
        self._outage_of(project).record_failure(reason, by=self.name, retry_after=retry_after)

    def record_unavailable(
        self, project: str, error: errors.JobApiUnreachable | errors.JobApiNotAllowed
    ) -> JobApiUnavailable:
        """Records that a project's job API was not available, unless it is only busy; returns what threads are told."""
        if isinstance(error, errors.JobApiNotAllowed):
            self.record_no_answer(project, error)
            return replace(unavailable(error), retry_after=NOT_ALLOWED_RETRY)
        if not isinstance(error, errors.JobApiBusy):
            self.record_no_answer(project, error, retry_after=error.retry_after)
        return unavailable(error)

    def job_api_status(self, project: str) -> ComponentStatus:
        """Returns the state of a project's job API, as whichever worker sees it worst."""
        return self._outage_of(project).status(_name(project))

    def _outage_of(self, project: str) -> Outage:
        return self._settings.outage_of(_name(project))


def _name(project: str) -> str:
    return f"job API of {project}"
