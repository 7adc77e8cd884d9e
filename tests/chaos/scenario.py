"""A run in one world: people at work, processes killed and paused under them, and quiet at the end."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from chaos.errand import Cards, Errand
from chaos.resume import Claims, Resume, doings, resumed
from chaos.verdict import Verdict, judge
from chaos.world import LEASE, World, until

STILL_FOR = LEASE + 15.0
"""Seconds without anything new after which nothing more is to come: a lease, and what a retry may wait."""
AT_ONCE = 25
"""Errands under way: more would only make everything slow."""
Trouble = Callable[[World, asyncio.Event], Awaitable[None]]
"""Does harm till the event is set, and leaves at least one process alive."""


@dataclass
class Outcome:
    """What a run came to."""

    world: World
    errands: list[Errand]
    verdict: Verdict
    resume: Resume
    quiet_after: float
    """Seconds from the last kill till nothing was left to do."""


async def play(world: World, trouble: Trouble, *, enough: Callable[[], bool], pace: float) -> Outcome:
    """Lets a new errand begin every `pace` seconds while there is trouble, until `enough`; then waits for quiet."""
    cards, claims, over = Cards(world), Claims(world), asyncio.Event()
    watching = asyncio.create_task(claims.watch())
    errands: list[Errand] = []
    running: list[asyncio.Task[None]] = []
    harm = asyncio.ensure_future(trouble(world, over))
    while not enough() and not harm.done():
        await asyncio.sleep(world.rng.uniform(0.5, 1.5) * pace)
        _finish_jobs_of_failed_commands(world, errands)
        if sum(not task.done() for task in running) >= AT_ONCE:
            continue
        number = len(errands) + 1
        errand = Errand(world, cards, number, random.Random(f"{world.name}/{world.rng.random()}"))  # noqa: S311 - repeatable
        errands.append(errand)
        running.append(asyncio.create_task(errand.run()))
    over.set()
    await harm
    began = asyncio.get_running_loop().time()
    verdict = await _quiet(world, errands, running)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)  # or its connection outlives the world
    return Outcome(world, errands, verdict, resumed(world, claims), asyncio.get_running_loop().time() - began)


async def _quiet(world: World, errands: list[Errand], running: list[asyncio.Task[None]]) -> Verdict:
    crew = world.crew

    async def over() -> bool:
        return all(task.done() for task in running)

    await _while_it_moves(world, over)
    waiting = [task for task in running if not task.done()]
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    for task in running:
        if task not in waiting:
            task.result()
    last = max((*(kill.at + LEASE + 2.0 for kill in crew.kills), *(pause.ended + 5.0 for pause in crew.pauses)))
    # What a killed process had claimed comes to light when its lease has run out, a paused one's late calls at once.
    await asyncio.sleep(max(last - asyncio.get_running_loop().time(), 0.0))

    async def idle() -> bool:
        # A reply that arrives when its errand is over, since Slack or a person sent it again, takes the job up again.
        _finish_active(world, world.ledger.jobs)
        return await world.work_left() == 0 and not judge(world, errands).stale

    quiet = await _while_it_moves(world, idle)
    verdict = judge(world, errands)
    if not quiet:
        verdict.losses.append(f"{world.name}: {await world.work_left()} rows still wait")
    stuck = [errand for errand in errands if errand.where != "done"]
    verdict.losses += [f"{errand.prompt or errand.number} {errand.where}, in vain" for errand in stuck]
    return verdict


async def _while_it_moves(world: World, condition: Callable[[], Awaitable[bool]]) -> bool:
    """Whether a condition came true before nothing new happened any more: a slow machine only takes longer."""
    done = seen = 0
    while not (met := await until(condition, STILL_FOR)) and (done := doings(world)) != seen:
        seen = done
    return met


def _finish_jobs_of_failed_commands(world: World, errands: list[Errand]) -> None:
    """Nobody goes on with these: Slack told the person that the command failed, though it had been recorded."""
    failed = {ask.prompt for errand in errands for ask in errand.asks if not ask.acked}
    _finish_active(world, {entry.job_id for entry in world.ledger.created if _name(entry.prompt) in failed})


def _name(prompt: str) -> str:
    return prompt.partition(" ")[0]


def _finish_active(world: World, job_ids: Iterable[str]) -> None:
    for job_id in job_ids:
        if world.ledger.jobs[job_id]["status"] == "active":
            world.ledger.show(job_id, "completed", f"https://git.example/stray/{job_id}")
