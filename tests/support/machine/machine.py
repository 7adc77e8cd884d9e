"""The base of all state machines: processes on one database, in an unreliable world outside, in virtual time.

The rules are in the neighbouring modules: each is a class, and a machine combines those that it wants.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar

from hypothesis.stateful import RuleBasedStateMachine
from support.fakes.ports import FakeClock
from support.fakes.virtual_loop import VirtualLoop
from support.machine.databases import Database
from support.worlds.fault_world import Crash, Outside, Process

from bot.domain.requests.request import RejectionReason
from bot.domain.threads.thread import Thread
from bot.errors import AuthorUnknown, StoreUnavailable
from bot.notices.requests import RequestRejected, RequestUncertain
from bot.store.store import Transaction, open_store

T = TypeVar("T")

LINKS = ("https://git.example/pull/1", "https://git.example/pull/2")


class Machine(RuleBasedStateMachine):
    """Two instances on one database. Each rule is an event outside or in an instance."""

    make_database: Callable[[], Database]

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.loop.set_exception_handler(_complain)
        self.database = type(self).make_database()
        clock = FakeClock()
        url = self.run(self.loop.in_real_time(self.database.open()))
        store = self.run(self.loop.in_real_time(open_store(url, clock=clock)))
        self.outside = Outside(store, clock, self.loop)
        self.idempotent, self.merge_seconds = False, 0.0
        self.births = 0
        self.processes: list[Process] = []

    def teardown(self) -> None:
        try:
            if self.processes:
                self.end_well()
        finally:
            self.run(self._kill_all())
            self.run(self.loop.in_real_time(self.outside.store.close()))
            self.run(self.loop.in_real_time(self.database.close()))
            self.loop.close()

    # -- for the machines -----------------------------------------------------------------------------------------

    def end_well(self) -> None:
        """Ends all faults; then everything must finish and every promise be kept."""
        raise NotImplementedError

    def after_step(self) -> None:
        """Checks the database after a process ran something."""

    # -- processes ------------------------------------------------------------------------------------------------

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs something to its end."""
        return self.loop.run_until_complete(work)

    def read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Runs a transaction that belongs to no process."""
        return self.run(self.loop.in_real_time(self.outside.store.transact(work)))

    def born(self) -> Process:
        """Starts a process."""
        self.births += 1
        return Process(
            self.outside, f"process-{self.births}", idempotent=self.idempotent, merge_seconds=self.merge_seconds
        )

    def in_process(self, at: int, work: Coroutine[Any, Any, Any]) -> bool:
        """Runs something in a process; False if that failed or killed it (another one replaces it)."""
        process, done = self.processes[at], True
        self.outside.step += 1
        try:
            self.run(work)
        except (AuthorUnknown, Crash, StoreUnavailable):
            done = False
        if not process.alive:
            done = False
            self.dies(at)
            self.processes[at] = self.born()
        self.after_step()
        return done

    def dies(self, at: int) -> None:
        """Kills a process; its claims may or may not have been sent."""
        process = self.processes[at]
        self.run(process.kill())
        held = {row["id"] for row in self.rows("requests") if row["claimed_by"] == process.owner}
        self.outside.in_doubt |= held

    def advance(self, seconds: float) -> None:
        """Advances the time."""
        self.outside.clock.advance(seconds)
        self.loop.advance(seconds)

    def resume_all(self) -> None:
        """Resumes every hanging call."""
        for at, process in enumerate(self.processes):
            while process.pauses:
                self.in_process(at, process.resume(0))

    def settle_down(self) -> None:
        """Advances the time from one due time to the next until nothing more happens by itself. A due notice that is
        not delivered waits for a method that is held back by Slack's 429.
        """
        for _ in range(1_000):  # a job that is gone is looked for 144 times
            for at in (0, 1):
                self.in_process(at, self.processes[at].settle())
            now = self.outside.clock.time
            due = [at for table in ("polls", "requests", "notices", "gaps") for at in self._due(table)]
            later = [at for at in due if at > now]
            if later:
                self.advance(min(later) - now + 0.01)
            elif any(at <= now for at in self._due("notices")):
                self.advance(1.0)
            else:
                return
            self.all_jobs_end()
        raise AssertionError("it never comes to rest")

    def all_jobs_end(self) -> None:
        """Ends all jobs."""
        for job_id, job in list(self.outside.job_api.jobs.items()):
            if job.status != "completed" or self.outside.job_api.slow:
                self.outside.job_api.show(job_id, "completed", LINKS[0])

    def job(self, which: int) -> str:
        """Chooses one of the jobs."""
        jobs = list(self.outside.job_api.jobs)
        return jobs[which % len(jobs)]

    def uncarded(self) -> list[str]:
        """Returns the threads of jobs without a card."""
        carded = {message.key.removesuffix("/card") for message in self.outside.cards()}
        return [row["id"] for row in self.rows("threads") if row["requester_id"] and row["id"] not in carded]

    def posts_to_send_again(self) -> list[tuple[str, str]]:
        """Returns the requests that posts offer to send again, with the posts' channels."""
        return [
            (message.request.request_id, posted.channel_id)
            for posted in self.outside.chat.messages
            if isinstance(message := posted.message, RequestUncertain)
            or (isinstance(message, RequestRejected) and message.reason is RejectionReason.HANDED_BACK)
        ]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Returns the rows of a table."""
        return self.run(self.loop.in_real_time(self.database.rows(table)))

    def stored_threads(self) -> dict[str, Thread]:
        """Returns the threads as stored."""
        return {row["id"]: self.read(_thread(row["id"])) for row in self.rows("threads")}

    def _due(self, table: str) -> Iterator[float]:
        for row in self.rows(table):
            if row["due_at"] is not None and row.get("cleared_at") is None:
                yield max(row["due_at"], row["claimed_until"] or 0.0)

    async def _kill_all(self) -> None:
        """Also ends everything else that is running, so that nothing uses a closed store."""
        for process in self.processes:
            await process.kill()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def _thread(thread_id: str) -> Callable[[Transaction], Awaitable[Thread]]:
    async def read(tx: Transaction) -> Thread:
        thread = await tx.threads.get(thread_id)
        assert thread is not None
        return thread

    return read


def _complain(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A dead process leaves tasks with a Crash behind; anything else is an error."""
    error = context.get("exception")
    assert isinstance(error, Crash), context
