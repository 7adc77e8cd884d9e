"""Two workers over one PostgreSQL: an instruction is one commit, whoever sleeps or is cut off at whatever step."""

import asyncio
from collections.abc import AsyncIterator, Collection
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sqlalchemy import select
from support.fakes.job_ports import ScriptedEditor, append_prompt
from support.servers.pgbouncer import PROGRAM, pgbouncer
from support.servers.postgres import JOB_SERVER, PostgresServer
from support.worlds.executor_world import TEMPLATE, ExecutorWorld, details, executing
from support.worlds.jobserver_world import until

from bot.errors import StoreUnavailable
from bot.jobapi.models import AgentJob, Mode, Status
from bot.jobserver.editors.interface import EditProgress, EditResult, EditTask
from bot.jobserver.repository.git_repository import GitRepository, StartingPoint
from bot.jobserver.settings.server import TokenBudget
from bot.jobserver.store.claims import LEASE
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.records import HeldInstruction, PromptRequest, Question
from bot.jobserver.store.tables import instructions
from bot.jobserver.usage import Spent

pytestmark = [pytest.mark.postgres, pytest.mark.promise("jobs once")]
AT_ONCE = 2.0
"""Seconds within which a worker sees what another process has recorded."""


BUDGET = TokenBudget(day=1_000)


class Gate:
    """Where something waits, from the moment it is held until it is let go."""

    def __init__(self) -> None:
        self.reached, self._open = asyncio.Event(), asyncio.Event()
        self._open.set()

    def hold(self) -> None:
        self._open.clear()

    def let_go(self) -> None:
        self._open.set()

    async def __call__(self) -> None:
        self.reached.set()
        await self._open.wait()


class HeldRepository(GitRepository):
    """One in which a push waits before, or after, and so does the second look at the branch."""

    def __init__(self, repository: GitRepository) -> None:
        super().__init__(repository.mirror, repository._base, repository._limits)
        self.before, self.after, self.second_look = Gate(), Gate(), Gate()
        self._looks = 0

    async def start(self, branch: str) -> StartingPoint:
        self._looks += 1
        if self._looks == 2:
            await self.second_look()
        return await super().start(branch)

    async def push(self, commit: str, branch: str, tip: str) -> None:
        await self.before()
        await super().push(commit, branch, tip)
        await self.after()


class CutOff(InstructionQueue):
    """A queue whose leases cannot be renewed while `is_cut_off`."""

    is_cut_off = False

    async def watch(self, worker: str, numbers: Collection[int], *, renew: bool) -> dict[int, HeldInstruction]:
        if self.is_cut_off:
            raise StoreUnavailable("The database does not answer.")
        return await super().watch(worker, numbers, renew=renew)


class Worker:
    """A worker with a data directory of its own. While it sleeps, its leases end by the database's clock."""

    def __init__(self, world: ExecutorWorld) -> None:
        self.world, self.editing, self.hurried = world, Gate(), timedelta()
        self.repository = HeldRepository(world.repository)
        self.queue = CutOff(world.queue.database)
        world.editor.script = self._edit
        world.tools = replace(world.tools, repository=self.repository)
        world.runner.queue = self.queue
        world.runner.monotonic = lambda: asyncio.get_running_loop().time() + self.hurried.total_seconds()

    async def _edit(self, task: EditTask, progress: EditProgress) -> EditResult:
        await self.editing()
        await append_prompt(task, progress)
        return EditResult(summary=f"I noted {task.prompt}.")

    def fall_asleep(self, *, is_counted: bool = False) -> None:
        """It does not find out that its lease is over; unless its clock counts the sleep, and it can look."""
        self.queue.is_cut_off = not is_counted
        self.hurried += LEASE if is_counted else timedelta()
        self.world.now.ahead += LEASE

    @property
    def prompts(self) -> list[str]:
        return [task.prompt for task in self.world.editor.tasks]


class Workers:
    """Two of them; the second starts when a test says so."""

    def __init__(self, first: Worker, second: Worker) -> None:
        self.first, self.second, self.world = first, second, first.world

    async def taken_over(self, *, is_counted: bool = False) -> None:
        """The first one sleeps past its lease, and the other one takes over."""
        self.first.fall_asleep(is_counted=is_counted)
        await self.second.world.runner.start()


@pytest.fixture
async def workers(postgres: PostgresServer, tmp_path: Path) -> AsyncIterator[Workers]:
    (tmp_path / "second").mkdir()
    async with (
        postgres.database(JOB_SERVER) as url,
        executing(tmp_path, ScriptedEditor(), url=url, budget=BUDGET) as first,
        executing(tmp_path / "second", ScriptedEditor(), url=url, budget=BUDGET, like=first) as second,
    ):
        workers = Workers(Worker(first), Worker(second))
        await first.runner.start()
        yield workers


async def test_each_instruction_is_done_by_one_worker(workers: Workers) -> None:
    world, other = workers.world, workers.second.world
    await other.runner.start()
    jobs = [await submit(world, f"job {number}") for number in range(12)]
    for job in jobs:
        await submit(world, "more", job.id)
    for job in jobs:
        assert (await world.ended(job.id)).status is Status.COMPLETED
    prompts = (workers.first.prompts, workers.second.prompts)
    assert all(prompts), "both worked"
    expected = [f"job {number}" for number in range(12)] + ["more"] * 12
    assert sorted([*prompts[0], *prompts[1]]) == sorted(expected)
    for number, job in enumerate(jobs):
        assert world.subjects(f"pagehand/{job.id}") == ["more", f"job {number}"]


@pytest.mark.parametrize("is_counted", [False, True], ids=["its clock stood still", "its clock counted the sleep"])
async def test_what_one_asleep_was_editing_is_done_again_and_its_own_work_dropped(
    workers: Workers, caplog: pytest.LogCaptureFixture, *, is_counted: bool
) -> None:
    world, first = workers.world, workers.first
    first.editing.hold()
    job = await world.submit("one")
    await first.editing.reached.wait()
    await workers.taken_over(is_counted=is_counted)
    done = await world.ended(job.id)
    first.editing.let_go()
    await until(lambda: _holds("its outcome is dropped" in caplog.text))
    assert await world.store.get(job.id) == done
    assert world.subjects(f"pagehand/{job.id}") == ["one"]
    assert len(world.pull_requests.opened) == 1
    await workers.second.world.runner.stop()
    first.queue.is_cut_off = False
    assert (await world.done("two", job.id)).status is Status.COMPLETED, "it goes on to work"


async def test_a_plan_of_one_asleep_is_made_by_another_one_that_carries_it_out(workers: Workers) -> None:
    world, first, other = workers.world, workers.first, workers.second.world

    async def plan(task: EditTask, progress: EditProgress) -> EditResult:
        if task.mode is Mode.PLAN:
            return EditResult(proposal="I would move it.")
        await append_prompt(task, progress)
        return EditResult("Moved it.")

    async def late(task: EditTask, progress: EditProgress) -> EditResult:
        await first.editing()
        return await plan(task, progress)

    world.editor.script, other.editor.script = late, plan
    first.editing.hold()
    job = await world.submitted(PromptRequest("one", mode=Mode.PLAN))
    await first.editing.reached.wait()
    await workers.taken_over()
    made = details(await world.ended(job.id)).proposal
    assert made is not None
    first.editing.let_go()
    await world.runner.stop()
    assert details(await world.store.get(job.id)).proposal == made
    for _ in range(2):
        await world.store.submit(PromptRequest("Go", job.id, "k", proposal=made.id), TEMPLATE)
    await world.ended(job.id)
    assert world.subjects(f"pagehand/{job.id}") == ["one"]
    assert [task.is_accepted for task in other.editor.tasks] == [False, True]


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_one_that_sleeps_while_it_pushes_adds_no_second_commit(workers: Workers, moment: str) -> None:
    """Even if somebody adds another one on top."""
    world, first, second = workers.world, workers.first, workers.second
    gate: Gate = getattr(first.repository, moment)
    gate.hold()
    job = await world.submit("one")
    branch = f"pagehand/{job.id}"
    await gate.reached.wait()
    if moment == "after":
        world.push_as_somebody(branch, "theirs.md", "theirs")
    else:
        second.repository.before.hold()
    await workers.taken_over()
    if moment == "before":
        await second.repository.before.reached.wait()
        gate.let_go()
        await first.repository.after.reached.wait()
        second.repository.before.let_go()
    done = await world.ended(job.id)
    gate.let_go()
    assert (done.status, done.pr_link) == (Status.COMPLETED, "https://host/pulls/1")
    assert details(done).summary == "I noted one."
    assert world.subjects(branch).count("one") == 1
    assert world.notes(branch) == "one\n"
    assert second.prompts == (["one"] if moment == "before" else []), "what is pushed is not done again"


async def test_a_push_that_arrives_between_the_search_for_it_and_the_fetch_is_found(workers: Workers) -> None:
    """As of a git that goes on for a while when its worker is dead."""
    world, first, second = workers.world, workers.first, workers.second
    first.repository.before.hold()
    second.repository.second_look.hold()
    job = await world.submit("one")
    await first.repository.before.reached.wait()
    await workers.taken_over()
    await second.repository.second_look.reached.wait()
    first.repository.before.let_go()
    await first.repository.after.reached.wait()
    second.repository.second_look.let_go()
    assert (await world.ended(job.id)).status is Status.COMPLETED
    assert world.subjects(f"pagehand/{job.id}") == ["one"]


async def test_an_answer_of_what_was_pushed_before_its_worker_slept_is_no_instruction(workers: Workers) -> None:
    world, first = workers.world, workers.first

    async def asks(task: EditTask, progress: EditProgress) -> None:
        await progress.ask(Question("Which port?"), str.isdigit)
        await append_prompt(task, progress)

    world.editor.script = asks
    first.repository.after.hold()
    job = await world.submit("one")
    await _asked(world, job)
    await submit(world, "443", job.id)
    await first.repository.after.reached.wait()
    await workers.taken_over()
    assert (await world.ended(job.id)).status is Status.COMPLETED
    assert world.subjects(f"pagehand/{job.id}") == ["one"]
    assert workers.second.prompts == []


async def test_a_push_after_another_ones_is_no_second_one(workers: Workers, caplog: pytest.LogCaptureFixture) -> None:
    world, first = workers.world, workers.first
    first.repository.before.hold()
    job = await world.submit("one")
    await first.repository.before.reached.wait()
    await workers.taken_over()
    done = await world.ended(job.id)
    await workers.second.world.done("two", job.id)
    first.repository.before.let_go()
    await until(lambda: _holds("its outcome is dropped" in caplog.text))
    assert done.status is Status.COMPLETED
    assert world.subjects(f"pagehand/{job.id}") == ["two", "one"]


async def test_a_worker_that_cannot_renew_ends_its_agent_before_its_lease_is_over(workers: Workers) -> None:
    world, first = workers.world, workers.first
    ended = asyncio.Event()

    async def edits(task: EditTask, progress: EditProgress) -> None:
        if len(world.editor.tasks) > 1:
            await append_prompt(task, progress)
            return
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    world.editor.script = edits
    job = await world.submit("one")
    await until(lambda: _holds(first.prompts))
    first.queue.is_cut_off = True
    await asyncio.sleep(AT_ONCE)
    assert not ended.is_set()
    first.hurried = LEASE * 0.7
    await asyncio.wait_for(ended.wait(), AT_ONCE)
    first.queue.is_cut_off = False
    assert (await world.ended(job.id)).status is Status.COMPLETED
    assert first.prompts == ["one", "one"]
    assert await attempts(world) == [1], "an outage is nobody's attempt"


async def test_a_worker_does_not_begin_again_what_it_is_still_ending(workers: Workers) -> None:
    """Both would work in the job's folder."""
    world, first, ending = workers.world, workers.first, Gate()
    ending.hold()

    async def edits(task: EditTask, progress: EditProgress) -> None:
        if len(first.prompts) == 1:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                await ending()
        await append_prompt(task, progress)

    world.editor.script = edits
    job = await world.submit("one")
    await until(lambda: _holds(first.prompts))
    first.fall_asleep()
    first.hurried = LEASE * 0.7
    await asyncio.wait_for(ending.reached.wait(), AT_ONCE)
    for _ in range(3):
        world.runner.wake(job.id)
        await asyncio.sleep(0.1)
    assert first.prompts == ["one"]
    first.queue.is_cut_off = False
    ending.let_go()
    assert (await world.ended(job.id)).status is Status.COMPLETED
    assert first.prompts == ["one", "one"]


async def test_a_stop_reaches_a_worker_in_another_process(workers: Workers) -> None:
    world = workers.world
    workers.first.editing.hold()
    job = await world.submit("one")
    await workers.first.editing.reached.wait()
    await world.store.cancel(job.id)
    async with asyncio.timeout(AT_ONCE):
        ended = await world.ended(job.id)
    assert (ended.status, details(ended).reason) == (Status.COMPLETED, "stopped by request")
    assert world.branches() == {"main"}


async def test_an_answer_reaches_a_worker_in_another_process(workers: Workers) -> None:
    world = workers.world

    async def asks(task: EditTask, progress: EditProgress) -> EditResult:
        return EditResult(f"Port {await progress.ask(Question('Which port?'), str.isdigit)}.")

    world.editor.script = asks
    job = await world.submit("one")
    await _asked(world, job)
    await submit(world, "443", job.id)
    async with asyncio.timeout(AT_ONCE):
        ended = await world.ended(job.id)
    assert details(ended).summary == "Port 443."


async def test_a_worker_in_another_process_begins_what_it_is_told_of_at_once(workers: Workers) -> None:
    world, waited = workers.world, list[float]()
    world.runner.look_pause = 30.0
    hearing = asyncio.create_task(world.database.listen(world.runner.wake))
    await asyncio.sleep(AT_ONCE)
    for number in range(5):
        world.editor.tasks.clear()
        workers.first.editing.reached.clear()
        began = asyncio.get_running_loop().time()
        job = await submit(world, f"{number}")
        await asyncio.wait_for(workers.first.editing.reached.wait(), AT_ONCE)
        waited.append(asyncio.get_running_loop().time() - began)
        await world.ended(job.id)
    hearing.cancel()
    assert sorted(waited)[2] < 1.0


@pytest.mark.skipif(PROGRAM is None, reason="PgBouncer is left out: it is not installed")
async def test_behind_a_pooler_a_worker_looks_each_second(postgres: PostgresServer, tmp_path: Path) -> None:
    async with pgbouncer(postgres) as pooler, postgres.empty_database() as direct:
        url = pooler.url(urlsplit(direct).path.lstrip("/"))
        async with executing(tmp_path, ScriptedEditor(), url=url) as world:
            async with asyncio.timeout(10):
                await world.database.listen(world.runner.wake)  # which ends, since nothing would be heard
            await world.runner.start()
            await world.done("one")
            held = Gate()
            held.hold()
            world.editor.script = lambda *_: held()
            job = await submit(world, "two")
            await asyncio.wait_for(held.reached.wait(), AT_ONCE)
            await world.store.cancel(job.id)
            async with asyncio.timeout(AT_ONCE):
                await world.ended(job.id)


async def test_a_worker_that_stops_keeps_what_its_agent_had_done(workers: Workers) -> None:
    """The next one continues from it."""
    world, first = workers.world, workers.first
    has_written = asyncio.Event()

    async def writes_and_hangs(task: EditTask, progress: EditProgress) -> None:
        await append_prompt(task, progress)
        has_written.set()
        await asyncio.get_running_loop().create_future()

    async def looks(task: EditTask, _: EditProgress) -> EditResult:
        return EditResult(await asyncio.to_thread((task.workspace.copy / "notes.md").read_text))

    world.editor.script = writes_and_hangs
    job = await world.submit("one")
    await has_written.wait()
    await world.runner.stop()
    world.editor.script = looks
    await world.restarted()
    done = await world.ended(job.id)
    assert details(done).summary == "one"
    assert world.notes(f"pagehand/{job.id}") == "one\n"
    assert first.prompts == ["one", "one"]


async def test_a_worker_that_stops_finishes_what_it_can_in_its_time(workers: Workers) -> None:
    world, first = workers.world, workers.first
    world.runner.stop_time = 30.0
    first.editing.hold()
    job, next_one = await world.submit("one"), await submit(world, "two")
    await world.submit("three")
    await until(lambda: _holds(len(first.prompts) == world.runner.max_concurrent_jobs))
    stopping = asyncio.create_task(world.runner.stop())
    await asyncio.sleep(0)
    first.editing.let_go()
    await stopping
    for job_id in (job.id, next_one.id):
        assert (await world.store.get(job_id)).status is Status.COMPLETED
    assert sorted(first.prompts) == ["one", "two"], "nothing new is begun"


async def test_the_budget_of_a_day_is_that_of_all_workers(workers: Workers) -> None:
    other = workers.second.world

    async def uses_much(task: EditTask, progress: EditProgress) -> None:
        progress.spent(Spent(sent=1_000))
        await append_prompt(task, progress)

    workers.world.editor.script = uses_much
    await workers.world.done("one")
    await workers.world.runner.stop()
    await other.runner.start()
    refused = await other.done("two")
    assert (refused.status, other.editor.tasks) == (Status.FAILED, [])
    assert "today's budget of all jobs" in str(details(refused).reason)


async def test_a_worker_that_stops_gives_back_what_it_runs(workers: Workers) -> None:
    world, first = workers.world, workers.first
    first.editing.hold()
    job = await world.submit("one")
    await first.editing.reached.wait()
    await world.runner.stop()
    world.now.ahead -= timedelta(hours=1)  # for so long it would be left to a worker that is still there
    await workers.second.world.runner.start()
    assert (await world.ended(job.id)).status is Status.COMPLETED
    assert await attempts(world) == [1]


async def test_what_was_pushed_before_a_worker_stopped_is_proposed_though_it_is_cancelled_meanwhile(
    workers: Workers,
) -> None:
    world, first = workers.world, workers.first
    first.repository.after.hold()
    job = await world.submit("one")
    await first.repository.after.reached.wait()
    await world.runner.stop()
    await world.store.cancel(job.id)
    await workers.second.world.runner.start()
    ended = await world.ended(job.id)
    assert (ended.status, ended.pr_link) == (Status.COMPLETED, "https://host/pulls/1")
    assert details(ended).reason == "stopped by request, after the change had been pushed"


async def submit(world: ExecutorWorld, prompt: str, job_id: str | None = None) -> AgentJob:
    """Has a prompt recorded, as another process does."""
    return await world.store.submit(PromptRequest(prompt, job_id), TEMPLATE)


async def attempts(world: ExecutorWorld) -> list[int]:
    return [row["attempts"] for row in await world.database.rows(select(instructions.c.attempts))]


async def _asked(world: ExecutorWorld, job: AgentJob) -> None:
    async def is_asked() -> bool:
        seen = (await world.store.get(job.id)).details
        return seen is not None and seen.question is not None

    await until(is_asked)


async def _holds(condition: object) -> bool:
    return bool(condition)
