"""Polls without news: the thread is not read and no decision is made, with the same results."""

import random
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from support.scratch import IN_MEMORY
from support.worlds.core_world import CoreWorld
from support.worlds.store_world import watched

from bot.errors import JobApiError, JobApiUncertain, JobApiUnreachable
from bot.jobapi.models import Changes, FileChange, JobDetails, PlanStep, StepStatus
from bot.scheduler.job_poller import MOST_READ
from bot.scheduler.poll_memory import PollMemory
from bot.store.store import open_store
from bot.store.threads import ClaimedPoll, KnownPoll

LINK = "https://git.example/1"
DETAILS = (
    None,
    JobDetails(activity="Reading"),
    JobDetails(plan=(PlanStep(title="Write", status=StepStatus.PENDING),)),
    JobDetails(question="Which?"),
    JobDetails(summary="Done.", revision="a1", changes=Changes(files=(FileChange(path="a.md"),), file_count=1)),
)


async def kinds(world: CoreWorld) -> list[type]:
    """Returns the kinds of the current claims; the polls are carried out."""
    claimed_at = world.clock.monotonic()
    items = await world.job_poller.claim(10)
    for item in items:
        await world.job_poller.process(item, claimed_at)
    return [type(item.poll) for item in items]


async def test_a_watch_with_a_remembered_poll_is_polled_without_its_thread(world: CoreWorld) -> None:
    """The first such poll leads to a decision, the next ones do not."""
    await world.started()
    seen = []
    for _ in range(4):
        world.clock.advance(3.0)
        seen += await kinds(world)
    assert seen == [ClaimedPoll, KnownPoll, KnownPoll, KnownPoll]
    assert world.job_api.polls == 4


async def test_first_polls_are_claimed_a_few_threads_per_transaction(world: CoreWorld) -> None:
    """So that other work can run in between; everything due is still claimed."""
    count, read, transact = 2 * MOST_READ + 3, list[int](), world.store.transact
    for number in range(count):
        await watched(world.store, f"t{number}")

    async def counted(work: Any, *, urgent: bool = False) -> Any:
        claimed = await transact(work, urgent=urgent)
        read.append(len(claimed))
        return claimed

    world.store.transact = counted  # type: ignore[method-assign]
    assert len(await world.job_poller.claim(100)) == count
    assert read == [MOST_READ, MOST_READ, 3]


async def test_a_remembered_jobs_change_is_reported(world: CoreWorld) -> None:
    ts = await world.started()
    await world.pass_time(20)
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(20)
    assert world.chat.said(ts)[-1] == "job_finished"


async def test_a_follow_up_invalidates_the_remembered_poll(world: CoreWorld) -> None:
    """After it, the same result means something else."""
    ts = await world.started()
    world.job_api.show("job-1", "failed")
    await world.pass_time(10)
    await world.reply(ts, "Once more", "5.1")
    await world.pass_time(1)
    world.clock.advance(3.0)
    assert await kinds(world) == [ClaimedPoll]


async def test_insignificant_fields_that_always_differ_are_not_remembered(world: CoreWorld) -> None:
    """Remembering it would cost a separate read of the thread each time."""
    await world.started()
    seen = []
    for number in range(6):
        world.job_api.show("job-1", "active", details=JobDetails(summary=f"{number}"))
        world.clock.advance(40.0)
        seen += await kinds(world)
    assert seen == [ClaimedPoll, KnownPoll, *[ClaimedPoll] * 4]


@asynccontextmanager
async def another_world(template: Path, memory: PollMemory) -> AsyncIterator[CoreWorld]:
    with TemporaryDirectory(dir=IN_MEMORY) as directory:
        path = shutil.copy(template, directory)
        world = CoreWorld()
        world.store = await open_store(f"sqlite:///{path}", clock=world.clock)
        yield world.assemble(memory=memory)
        await world.store.close()


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 12))])
async def test_remembered_polls_do_not_change_behaviour(sqlite_template: Path, seed: int) -> None:
    """For random histories: jobs that change or not, follow-ups, faults of the job API, passing time."""
    played = []
    for memory in (PollMemory(), PollMemory(limit=0)):
        async with another_world(sqlite_template, memory) as world:
            random.seed(seed)  # the random numbers that spread the polls
            played.append(await play(world, random.Random(seed)))  # noqa: S311 - a history, the same twice
    assert played[0] == played[1]


async def play(world: CoreWorld, chance: random.Random) -> Any:
    """Returns the state and notices after each step of a random history, and the number of polls so far."""
    ts, history = await world.started(), list[Any]()
    for number in range(30):
        match chance.randrange(5):
            case 0:
                status = chance.choice(["active", "active", "completed", "failed"])
                link = chance.choice([None, LINK]) if status == "completed" else None
                world.job_api.show("job-1", status, link, chance.choice(DETAILS))
            case 1 if chance.random() < 0.5:
                await world.reply(ts, f"more {number}", f"{float(ts) + number:.6f}")
            case 2 if chance.random() < 0.5:
                fault: JobApiError = chance.choice([JobApiUnreachable("down"), JobApiUncertain("slow")])
                world.job_api.faults += [fault] * chance.choice([1, 2, 12])
        for _ in range(chance.choice([1, 3, 20])):
            world.clock.advance(2.0)
            await world.settle()
        history.append(((await world.thread(ts)).state, world.chat.said(ts), world.job_api.polls))
    return history
