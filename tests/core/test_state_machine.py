"""The store, the service and the loops against a simple model, with crashes, pauses, faults and time as steps.

`HYPOTHESIS_PROFILE=long` looks further (minutes). What is found is printed as a list of steps.
"""

import asyncio
import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from support.fakes.ports import FakeClock
from support.fakes.virtual_loop import VirtualLoop
from support.oracles.core_verdict import Model, Verdict, Version, Written
from support.oracles.promises import AskedFor, check, done_too_often, said_too_often
from support.scratch import IN_MEMORY
from support.worlds.core_world import ANA, BEN, EVA
from support.worlds.fault_traps import BAD_STARTS, TRAPS
from support.worlds.fault_world import Crash, Outside, Process, Trap

from bot.domain.actions import Action
from bot.domain.job_details import JobDetails, PlanStep, StepStatus
from bot.domain.new_jobs import NewJob
from bot.domain.notices.messages import ReplyEdited
from bot.domain.notices.posts import RequestUncertain
from bot.domain.requests import Person, Reply, RequestKind, WayIn
from bot.domain.threads import Thread
from bot.errors import StoreUnavailable
from bot.ports import Transaction
from bot.store.schema.migration import migrate
from bot.store.store import open_store

T = TypeVar("T")

LINKS = ("https://git.example/pull/1", "https://git.example/pull/2")
DETAILS = (
    None,
    None,
    JobDetails(plan=(PlanStep("Read", StepStatus.IN_PROGRESS),), activity="Reading"),
    JobDetails(plan=(PlanStep("Read", StepStatus.COMPLETED), PlanStep("Write")), activity="Writing"),
    JobDetails(summary="Done.", revision="a1"),
    JobDetails(summary="It was short already.", reason="It was short already.", revision="a1"),
    JobDetails(question="Which guide?"),
    JobDetails(summary="Which guide?", question="Which guide?", revision="b2"),
)


@pytest.fixture(scope="module")
def template() -> Iterator[Path]:
    """A database with the tables and nothing in them."""
    with TemporaryDirectory(dir=IN_MEMORY) as directory:
        path = Path(directory) / "template.db"
        asyncio.run(migrate(f"sqlite:///{path}"))
        yield path


class FaultWorld(RuleBasedStateMachine):
    """Two instances on one database. Each rule is something that can happen in the world outside or to an instance."""

    template: Path

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.loop.set_exception_handler(_complain)
        self.directory = TemporaryDirectory(dir=IN_MEMORY)
        path = Path(self.directory.name) / "pagehand.db"
        shutil.copy(self.template, path)
        clock = FakeClock()
        store = self.run(self.loop.in_real_time(open_store(f"sqlite:///{path}", clock=clock)))
        self.outside = Outside(store, clock, self.loop)
        self.database = sqlite3.connect(path)
        self.database.row_factory = sqlite3.Row
        self.model = Model()
        self.births = 0
        self.processes: list[Process] = []

    @initialize(
        idempotent=st.booleans(),
        cancels=st.booleans(),
        merge_seconds=st.sampled_from([0.0, 3.0]),
        jobs=st.sampled_from([1, 1, 2, 0]),
        replies=st.integers(0, 2),
        traps=st.sampled_from(BAD_STARTS),
    )
    def begin(
        self,
        *,
        idempotent: bool,
        cancels: bool,
        merge_seconds: float,
        jobs: int,
        replies: int,
        traps: tuple[Trap, ...],
    ) -> None:
        """Most runs begin with a job or two under way: what goes wrong at its start is a small part of what can."""
        self.outside.job_api.honours_keys = idempotent
        self.outside.job_api.cancels = cancels
        self.idempotent, self.merge_seconds = idempotent, merge_seconds
        self.processes = [self._born(), self._born()]
        self.outside.traps += traps
        for number in range(jobs):
            self._deliver_start(f"start-{number}", "C1", 0)
        self._in_process(0, self.processes[0].settle())
        for at in range(replies if self.outside.cards() else 0):
            self._deliver_reply(self._write(0, ANA), at)

    def teardown(self) -> None:
        try:
            if self.processes:
                self._end_well()
        finally:
            self.run(self._kill_all())
            self.run(self.loop.in_real_time(self.outside.store.close()))
            self.database.close()
            self.loop.close()
            self.directory.cleanup()

    # -- people ---------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.model.starts) < 4)
    @rule(channel=st.sampled_from(["C1", "C2", "C1", "CPRIVATE"]), at=st.integers(0, 1))
    def start(self, channel: str, at: int) -> None:
        self._deliver_start(f"start-{len(self.model.starts)}", channel, at)

    @precondition(lambda self: self.model.starts)
    @rule(which=st.integers(0, 9), at=st.integers(0, 1))
    def start_again(self, which: int, at: int) -> None:
        key = list(self.model.starts)[which % len(self.model.starts)]
        self._deliver_start(key, self.model.starts[key][0], at)

    @precondition(lambda self: self.outside.cards() and len(self.model.replies) < 8)
    @rule(which=st.integers(0, 9), person=st.sampled_from([ANA, ANA, BEN, BEN, EVA]), at=st.sampled_from([0, 1, None]))
    def reply(self, which: int, person: Person, at: int | None) -> None:
        """Somebody replies below a card; Slack delivers it at once, or later, or again (`deliver`)."""
        written = self._write(which, person)
        if at is not None:
            self._deliver_reply(written, at)

    @precondition(lambda self: self.model.replies)
    @rule(which=st.integers(0, 9), at=st.integers(0, 1))
    def deliver(self, which: int, at: int) -> None:
        self._deliver_reply(self.model.replies[which % len(self.model.replies)], at)

    @precondition(lambda self: self.model.replies)
    @rule(which=st.integers(0, 9), words=st.sampled_from([True, True, False]), at=st.sampled_from([0, 1, None]))
    def edit(self, *, which: int, words: bool, at: int | None) -> None:
        """Somebody edits or deletes a reply; Slack delivers that at once, or later, or again (`deliver_edit`)."""
        written = self.model.replies[which % len(self.model.replies)]
        moment = self.outside.chat.next_ts()
        version = Version(moment, f"{written.text} as of {moment}" if words else "")
        written.versions.append(version)
        if at is not None:
            self._deliver_edit(written, version, at)

    @precondition(lambda self: self._edits())
    @rule(which=st.integers(0, 9), at=st.integers(0, 1))
    def deliver_edit(self, which: int, at: int) -> None:
        edits = self._edits()
        self._deliver_edit(*edits[which % len(edits)], at)

    @precondition(lambda self: self._offers())
    @rule(which=st.integers(0, 9), person=st.sampled_from([ANA, ANA, BEN, EVA]), at=st.integers(0, 1))
    def press_send_new_words(self, which: int, person: Person, at: int) -> None:
        offers = self._offers()
        press = Action(
            person,
            RequestKind.SEND_NEW_WORDS,
            f"press-{self.outside.step}",
            argument=offers[which % len(offers)],
        )
        self._in_process(at, self.processes[at].service.act(press))

    @precondition(lambda self: self._uncertain_posts())
    @rule(which=st.integers(0, 9), person=st.sampled_from([ANA, BEN, EVA]), at=st.integers(0, 1))
    def press_send_again(self, which: int, person: Person, at: int) -> None:
        posts = self._uncertain_posts()
        request_id, channel = posts[which % len(posts)]
        self._press(request_id, channel, person, at)

    @precondition(lambda self: self.model.pressed)
    @rule(which=st.integers(0, 9), at=st.integers(0, 1))
    def a_press_comes_again(self, which: int, at: int) -> None:
        """However late: it does something only where it was not recorded before."""
        key = list(self.model.pressed)[which % len(self.model.pressed)]
        request, channel, person, acked = self.model.pressed[key]
        before = [row["id"] for row in self._rows("requests")]
        self._press(request, channel, person, at, key=key)
        assert not acked or [row["id"] for row in self._rows("requests")] == before

    @precondition(lambda self: self.outside.cards() and len(self.model.stops) < 4)
    @rule(which=st.integers(0, 9), person=st.sampled_from([ANA, BEN]), at=st.integers(0, 1))
    def stop(self, which: int, person: Person, at: int) -> None:
        """Somebody presses the button of a card."""
        card = self.outside.cards()[which % len(self.outside.cards())]
        self._deliver_stop(f"stop-{len(self.model.stops)}", card.key.removesuffix("/card"), person, at)

    @precondition(lambda self: self.model.stops)
    @rule(which=st.integers(0, 9), at=st.integers(0, 1))
    def a_stop_comes_again(self, which: int, at: int) -> None:
        key = list(self.model.stops)[which % len(self.model.stops)]
        thread, person, _ = self.model.stops[key]
        self._deliver_stop(key, thread, person, at)

    # -- the world outside ----------------------------------------------------------------------------------------

    @rule(trap=st.sampled_from(TRAPS))
    def something_will_go_wrong(self, trap: Trap) -> None:
        if len(self.outside.traps) < 3:
            self.outside.traps.append(trap)

    @precondition(lambda self: self.outside.job_api.jobs)
    @rule(
        which=st.integers(0, 9),
        status=st.sampled_from(["active", "completed", "failed", "archived", "queued"]),
        link=st.sampled_from([None, *LINKS]),
        details=st.sampled_from(DETAILS),
    )
    def job_changes(self, *, which: int, status: str, link: str | None, details: JobDetails | None) -> None:
        self.outside.job_api.show(self._job(which), status, link, details)

    @precondition(lambda self: self.outside.job_api.jobs)
    @rule(which=st.integers(0, 9))
    def job_vanishes_or_is_back(self, which: int) -> None:
        self.outside.job_api.hidden ^= {self._job(which)}

    @rule(channel=st.sampled_from(["C1", "C2"]))
    def channel_is_archived_or_back(self, channel: str) -> None:
        self.outside.chat.archived ^= {channel}

    @rule(seconds=st.sampled_from([0.5, 2.0, 2.0, 9.0, 31.0, 31.0, 100.0, 400.0, 300_000.0]))
    def time_passes(self, seconds: float) -> None:
        self._advance(seconds)

    # -- the instances --------------------------------------------------------------------------------------------

    @rule(
        at=st.integers(0, 1),
        loop=st.sampled_from(["request_preparer", "outbox", "request_sender", "job_poller"]),
        limit=st.sampled_from([1, 100]),
    )
    def takes(self, at: int, loop: str, limit: int) -> None:
        process = self.processes[at]
        self._in_process(at, process.take(getattr(process, loop), limit))

    @precondition(lambda self: any(process.in_hand for process in self.processes))
    @rule(at=st.integers(0, 1), which=st.integers(0, 9))
    def works(self, at: int, which: int) -> None:
        if self.processes[at].in_hand:
            self._in_process(at, self.processes[at].work(which))

    @precondition(lambda self: any(process.pauses for process in self.processes))
    @rule(at=st.integers(0, 1), which=st.integers(0, 9))
    def goes_on(self, at: int, which: int) -> None:
        if self.processes[at].pauses:
            self._in_process(at, self.processes[at].resume(which))

    @rule(at=st.integers(0, 1))
    def does_all_there_is(self, at: int) -> None:
        self._in_process(at, self.processes[at].settle())

    @rule(at=st.integers(0, 1), seconds=st.sampled_from([2.0, 31.0]))
    def works_for_a_while(self, at: int, seconds: float) -> None:
        self._advance(seconds)
        self._in_process(at, self.processes[at].settle())

    @rule(at=st.integers(0, 1), gracefully=st.booleans())
    def is_restarted(self, *, at: int, gracefully: bool) -> None:
        process = self.processes[at]
        self.run(process.kill())
        if gracefully:
            self._read(lambda tx: tx.claims.release(process.owner))
        self.processes[at] = self._born()

    # -- what must hold at any time -------------------------------------------------------------------------------

    @invariant()
    def nothing_is_said_twice(self) -> None:
        check(said_too_often(message.key for message in self.outside.chat.messages))

    @invariant()
    def nothing_is_done_twice(self) -> None:
        taken = Counter(self.outside.job_api.effects)
        for name, times in taken.items():
            sent_again = self.model.presses[name]
            request = AskedFor(name, acknowledged=False, taken=times, sent_again=sent_again)
            check(done_too_often([request]))

    @invariant()
    def there_is_no_job_before_its_card(self) -> None:
        cards = {message.key.removesuffix("/card") for message in self.outside.cards()}
        starts = {row["id"]: row["thread_id"] for row in self._rows("requests") if row["kind"] == "start"}
        assert all(starts[key] in cards for key in self.outside.job_api.effects if key in starts)

    # -- the end --------------------------------------------------------------------------------------------------

    def _end_well(self) -> None:
        """All faults end; then everything has to come to its end by itself, and what is unsure by a person's press."""
        self._calm()
        self.verdict().check(pressed=False)
        unsure = [row for row in self._rows("requests") if row["state"] == "uncertain" and not row["merged_into"]]
        for request in unsure:
            channel = next(row["channel_id"] for row in self._rows("threads") if row["id"] == request["thread_id"])
            self._press(request["id"], channel, ANA, 0)
        self._settle_down()
        self.verdict().check(pressed=True)

    def verdict(self) -> Verdict:
        tables = {name: self._rows(name) for name in ("threads", "polls", "requests", "notices", "early_replies")}
        stored = {row["id"]: self._read(_thread(row["id"])) for row in tables["threads"]}
        return Verdict(self.outside, self.model, tables, stored)

    def _calm(self) -> None:
        self.outside.traps.clear()
        self.outside.chat.archived.clear()
        for at, process in enumerate(self.processes):
            while process.pauses:
                self._in_process(at, process.resume(0))
        for written in self.model.replies:
            if not written.acked:
                self._deliver_reply(written, 0)
            for version in reversed(written.versions):
                if version.acked is None:
                    self._deliver_edit(written, version, 0)
        for job_id in self.outside.job_api.jobs:
            self.outside.job_api.show(job_id, "completed", LINKS[0])
        self._settle_down()

    def _settle_down(self) -> None:
        """Lets time pass, from one due time to the next, till nothing is due any more."""
        for _ in range(200):
            for at in (0, 1):
                self._in_process(at, self.processes[at].settle())
            due = [at for table in ("polls", "requests", "notices") for at in self._due(table)]
            later = [at for at in due if at > self.outside.clock.time]
            if not later:
                return
            self._advance(min(later) - self.outside.clock.time + 0.01)
            for job_id, job in list(self.outside.job_api.jobs.items()):
                if job.status != "completed":
                    self.outside.job_api.show(job_id, "completed", LINKS[0])
        raise AssertionError("it never comes to rest")

    def _due(self, table: str) -> Iterator[float]:
        for row in self._rows(table):
            if row["due_at"] is not None:
                yield max(row["due_at"], row["claimed_until"] or 0.0)

    # -- how it is done -------------------------------------------------------------------------------------------

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def _read(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        return self.run(self.loop.in_real_time(self.outside.store.transact(work)))

    def _born(self) -> Process:
        self.births += 1
        return Process(
            self.outside, f"process-{self.births}", idempotent=self.idempotent, merge_seconds=self.merge_seconds
        )

    def _in_process(self, at: int, work: Coroutine[Any, Any, Any]) -> bool:
        """Runs something in a process; False where that failed or killed it (another one takes its place)."""
        process, done = self.processes[at], True
        self.outside.step += 1
        try:
            self.run(work)
        except (Crash, StoreUnavailable):
            done = False
        if not process.alive:
            done = False
            self.run(process.kill())
            self.processes[at] = self._born()
        for row in self._rows("requests"):
            self.model.recorded.setdefault(row["id"], self.outside.step)
        self._count_presses()
        return done

    def _count_presses(self) -> None:
        """Those that had a request sent again: their people were told so."""
        answered = {row["key"]: row["message"] for row in self._rows("notices") if row["delivery"] == "ephemeral"}
        self.model.presses.clear()
        for row in self._rows("requests"):
            answer = answered.get(f"{row['thread_id']}/{row['source_key']}", "")
            if row["kind"] == "send_again" and '"sent_again"' in answer:
                assert row["person_id"] != EVA.id
                self.model.presses[row["text"]] += 1

    def _deliver_start(self, key: str, channel: str, at: int) -> None:
        service = self.processes[at].service
        acked = self._in_process(at, service.start(NewJob(ANA, channel, f"Do {key}", key, WayIn.COMMAND)))
        self.model.starts[key] = (channel, acked or self.model.starts.get(key, ("", False))[1])

    def _write(self, which: int, person: Person) -> Written:
        card = self.outside.cards()[which % len(self.outside.cards())]
        written = Written(person, card.channel_id, card.ts, self.outside.chat.next_ts())
        self.model.replies.append(written)
        return written

    def _deliver_reply(self, written: Written, at: int) -> None:
        steering = self.processes[at].service.receive(
            Reply(written.person, written.channel_id, written.thread_ts, written.ts, written.text)
        )
        written.acked = self._in_process(at, steering) or written.acked

    def _deliver_stop(self, key: str, thread: str, person: Person, at: int) -> None:
        stopping = self.processes[at].service.act(Action(person, RequestKind.STOP, key, thread_id=thread))
        acked = self._in_process(at, stopping) or (key in self.model.stops and self.model.stops[key][2])
        self.model.stops[key] = (thread, person, acked)

    def _deliver_edit(self, written: Written, version: Version, at: int) -> None:
        place = (written.person, written.channel_id, written.thread_ts, written.ts)
        reply = Reply(*place, version.text, edited_at=version.at, withdrawn=not version.text)
        acked = self._in_process(at, self.processes[at].service.revise(reply))
        if acked and version.acked is None:
            version.acked = self.outside.step

    def _press(self, request: str, channel: str, person: Person, at: int, *, key: str = "") -> None:
        key = key or f"press-{len(self.model.pressed)}"
        press = Action(person, RequestKind.SEND_AGAIN, key, channel_id=channel, argument=request)
        pressing = self.processes[at].service.act(press)
        acked = self._in_process(at, pressing) or self.model.pressed.get(key, ("", "", person, False))[3]
        self.model.pressed[key] = (request, channel, person, acked)

    def _advance(self, seconds: float) -> None:
        self.outside.clock.advance(seconds)
        self.loop.advance(seconds)

    async def _kill_all(self) -> None:
        """And ends whatever else still runs, so that nobody is at work in a store that is closed."""
        for process in self.processes:
            await process.kill()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _uncertain_posts(self) -> list[tuple[str, str]]:
        """The requests that threads tell to be uncertain, with their channels."""
        return [
            (posted.message.request.request_id, posted.channel_id)
            for posted in self.outside.chat.messages
            if isinstance(posted.message, RequestUncertain)
        ]

    def _edits(self) -> list[tuple[Written, Version]]:
        return [(written, version) for written in self.model.replies for version in written.versions]

    def _offers(self) -> list[str]:
        return [offer.request_id for offer in self.outside.chat.told_as(ReplyEdited)]

    def _job(self, which: int) -> str:
        jobs = list(self.outside.job_api.jobs)
        return jobs[which % len(jobs)]

    def _rows(self, table: str) -> list[dict[str, Any]]:
        return [dict(row) for row in self.database.execute(f"SELECT * FROM {table}")]  # noqa: S608 - a table of ours


def _thread(thread_id: str) -> Callable[[Transaction], Awaitable[Thread]]:
    async def read(tx: Transaction) -> Thread:
        thread = await tx.threads.get(thread_id)
        assert thread is not None
        return thread

    return read


def _complain(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """A dead process leaves tasks with a Crash behind; anything else is a fault."""
    error = context.get("exception")
    assert isinstance(error, Crash), context


def test_whatever_happens_nothing_is_lost_and_nothing_is_said_twice(template: Path) -> None:
    """Tens of runs of 30 steps; thousands of 60 in the long profile."""
    FaultWorld.template = template
    examples, steps = (2_000, 60) if os.environ.get("HYPOTHESIS_PROFILE") == "long" else (40, 30)
    run_state_machine_as_test(
        FaultWorld,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
