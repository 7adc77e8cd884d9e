"""A run in one world: people at work, processes killed and paused under them, and a quiet end."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from support.chaos.actions_verdict import ends_unseen, homes_broken
from support.chaos.asked import Cards
from support.chaos.direct_scenario import DirectScenario, lines_broken
from support.chaos.process_world import LEASE, PEOPLE, Disruption, ProcessWorld, until
from support.chaos.resume import Claims, Resume, doings, resumed
from support.chaos.signing_secrets import replace_signing_secrets, wrongly_refused
from support.chaos.user_scenario import UserScenario
from support.chaos.verdict import Verdict, judge
from support.oracles.promises import Broken, Promise

STILL_FOR = LEASE + 15.0 + 30.0
"""Seconds without anything new after which nothing more is expected: a lease, the longest wait of a retry, and that of
a reply for the history of its thread.
"""
AT_ONCE = 25
"""Concurrent scenarios: more would only slow everything down."""


@dataclass
class RoundResult:
    """The result of a run."""

    world: ProcessWorld
    scenarios: list[UserScenario]
    verdict: Verdict
    resume: Resume
    quiet_after: float
    """Seconds from the last kill until no work was left."""


async def play(world: ProcessWorld, disruption: Disruption, *, enough: Callable[[], bool], pace: float) -> RoundResult:
    """Starts a scenario every `pace` seconds while there are kills or pauses, until `enough`; then waits for quiet."""
    cards, claims, over = Cards(world), Claims(world), asyncio.Event()
    watching = asyncio.create_task(claims.watch())
    scenarios: list[UserScenario] = []
    direct = [DirectScenario(world, name, random.Random(world.rng.random())) for name in PEOPLE]  # noqa: S311 - repeatable
    running = [asyncio.create_task(scenario.run()) for scenario in direct]
    harm = asyncio.ensure_future(disruption(world, over))
    going_on = (replace_signing_secrets(world, over), world.keep_nothing_once_known(over))
    meanwhile = [asyncio.create_task(each) for each in going_on]
    while not enough() and not harm.done():
        await asyncio.sleep(world.rng.uniform(0.5, 1.5) * pace)
        _finish_jobs_of_failed_commands(world, scenarios)
        if sum(not task.done() for task in running) >= AT_ONCE:
            continue
        number = len(scenarios) + 1
        scenario = UserScenario(world, cards, number, random.Random(f"{world.name}/{world.rng.random()}"))  # noqa: S311 - repeatable
        scenarios.append(scenario)
        running.append(asyncio.create_task(scenario.run()))
    over.set()
    await harm
    await asyncio.gather(*meanwhile)
    began = asyncio.get_running_loop().time()
    verdict = await _quiet(world, scenarios, running)
    verdict.broken += [fault for scenario in direct for fault in await lines_broken(scenario)]
    verdict.broken += wrongly_refused(world)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)  # or its connection outlives the world
    return RoundResult(world, scenarios, verdict, resumed(world, claims), asyncio.get_running_loop().time() - began)


async def _quiet(world: ProcessWorld, scenarios: list[UserScenario], running: list[asyncio.Task[None]]) -> Verdict:
    process_pool = world.process_pool

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
    last = max(
        (*(kill.at + LEASE + 2.0 for kill in process_pool.kills), *(pause.ended + 5.0 for pause in process_pool.pauses))
    )
    # A killed process's claims show once its lease has expired, a paused one's late calls at once.
    await asyncio.sleep(max(last - asyncio.get_running_loop().time(), 0.0))

    async def idle() -> bool:
        # A reply that arrives after its scenario, because Slack or a person sent it again, resumes the job.
        _finish_active(world, world.fake_job_api.jobs)
        if (
            await ends_unseen(world)
            or await world.work_left()
            or (await judge(world, scenarios)).count(Promise.UP_TO_DATE)
        ):
            return False
        return not await homes_broken(world)

    await world.late_webhooks()
    quiet = await _while_it_moves(world, idle)
    verdict = await judge(world, scenarios)
    verdict.broken += await homes_broken(world)
    left = [] if quiet else [f"{world.name}: {await world.work_left()} rows still wait"]
    stuck = [scenario for scenario in scenarios if scenario.where != "done"]
    left += [f"{scenario.prompt or scenario.number} {scenario.where}, in vain" for scenario in stuck]
    verdict.broken += [Broken(Promise.NOTHING_LOST, how) for how in left]
    return verdict


async def _while_it_moves(world: ProcessWorld, condition: Callable[[], Awaitable[bool]]) -> bool:
    """Returns whether a condition became true before progress stopped: a slow machine only takes longer."""
    done = seen = 0
    while not (met := await until(condition, STILL_FOR, every=1.0)) and (done := doings(world)) != seen:
        seen = done
    return met


def _finish_jobs_of_failed_commands(world: ProcessWorld, scenarios: list[UserScenario]) -> None:
    """Completes jobs that nobody continues: Slack told the person that the command failed, although it was recorded."""
    failed = {ask.prompt for scenario in scenarios for ask in scenario.asks if not ask.acked}
    _finish_active(world, {entry.job_id for entry in world.fake_job_api.created if _name(entry.prompt) in failed})


def _name(prompt: str) -> str:
    return prompt.partition(" ")[0]


def _finish_active(world: ProcessWorld, job_ids: Iterable[str]) -> None:
    for job_id in job_ids:
        if world.fake_job_api.jobs[job_id]["status"] == "active":
            details = {"summary": f"This is the stray end of {job_id}.", "revision": f"stray {job_id}"}
            world.fake_job_api.show(job_id, "completed", f"https://git.example/stray/{job_id}", details=details)
