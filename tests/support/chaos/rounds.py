"""What is done to a world in a round, and how a round is played on either database."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from support.chaos.kill_points import POINTS, ending_at
from support.chaos.process_group import ProcessGroup
from support.chaos.process_world import LEASE, Disruption, ProcessWorld, Round, world
from support.chaos.run import RoundResult, play
from support.oracles.leaks import faults_in_logs
from support.servers.fake_job_api import KEY, TRUNCATED, Operation, cut, refusing

from bot.store.schema.migration import migrate

PAUSE_POINTS = tuple(point for point in POINTS if not point.endswith(".before"))
"""All but those between the last check of the lease and the call: nothing can keep such a call from going out late. For
the same reason no process is paused at a random moment.
"""
DOWN = 5.0
"""Seconds for which no process is alive, at most."""
PATIENCE = 8.0
"""Seconds to wait for a process to reach its point: some are rarely reached."""


async def one_instance(world: ProcessWorld, over: asyncio.Event) -> None:
    """One process is killed and restarted repeatedly."""
    await world.process_pool.kill_repeatedly("a", over)


async def three_instances(world: ProcessWorld, over: asyncio.Event) -> None:
    """Two are killed and restarted repeatedly; the third is killed once and not restarted. At times, none is alive."""
    await asyncio.gather(
        world.process_pool.kill_repeatedly("a", over),
        world.process_pool.kill_repeatedly("b", over),
        _lost_for_good(world, over),
        _downtimes(world, over),
    )


async def three_instances_and_a_paused_one(world: ProcessWorld, over: asyncio.Event) -> None:
    """The same with a fourth that is repeatedly paused for longer than any lease."""
    await asyncio.gather(three_instances(world, over), _pause_repeatedly(world, over))


async def paused_instances(world: ProcessWorld, over: asyncio.Event) -> None:
    """Two processes keep working while three pause themselves, each at its own point, for longer than any lease."""
    for instance in ("running-1", "running-2"):
        await world.process_pool.start(instance)
    points = world.rng.sample(PAUSE_POINTS, len(PAUSE_POINTS))
    await asyncio.gather(*(_pause_once(world, over, f"paused-{n}", points, LEASE + 2.0) for n in range(3)))
    await over.wait()


async def _pause_once(
    world: ProcessWorld, over: asyncio.Event, instance: str, points: list[str], seconds: float
) -> None:
    """Makes a process pause itself at the first point that it reaches; one that does not is replaced."""
    while not over.is_set():
        target = await world.process_pool.start(instance, ending_at("stop", points.pop(), 2))
        try:
            await asyncio.wait_for(target.at_point.wait(), PATIENCE)
        except TimeoutError:
            await world.process_pool.kill(target)
        else:
            await world.process_pool.pause(target, seconds)
            return


def with_faults(disruption: Disruption) -> Disruption:
    """The same, while Slack and the polls of the job API fail every other second."""

    async def both(world: ProcessWorld, over: asyncio.Event) -> None:
        await asyncio.gather(disruption(world, over), _faults(world, over))

    return both


async def _faults(world: ProcessWorld, over: asyncio.Event) -> None:
    slack, fake_job_api = world.workspace.faults, world.fake_job_api
    kinds: list[Callable[[], object]] = [
        lambda: slack.rate_limit(1),
        lambda: slack.server_error(method="chat.postMessage"),
        lambda: slack.server_error(applied=True, method="chat.postMessage"),
        lambda: slack.drop(applied=True, method="chat.postMessage"),
        lambda: slack.drop(applied=True, method="chat.update"),
        lambda: slack.server_error(applied=True, method="reactions.add"),
        lambda: slack.envelope("duplicate", "events_api"),
        lambda: slack.envelope("drop_ack", "events_api"),
        lambda: slack.refuse_blocks(world.rng.choice(("card", "plan"))),
        world.workspace.socket_mode.abort_connections,
        lambda: fake_job_api.fail(refusing(503, Retry_After="1"), Operation.GET),
        lambda: fake_job_api.fail(refusing(404), Operation.GET),
        lambda: fake_job_api.fail(refusing(404, "no such job"), Operation.GET),
        lambda: fake_job_api.fail(cut(applied=True), Operation.GET),
        lambda: fake_job_api.fail(TRUNCATED, Operation.GET),
    ]
    while not over.is_set():
        await asyncio.sleep(world.rng.uniform(1.0, 3.0))
        world.rng.choice(kinds)()
        world.faults += 1


async def _downtimes(world: ProcessWorld, over: asyncio.Event) -> None:
    """The first as soon as what is written in it can be found."""
    while not (over.is_set() or world.workspace.faults.keeps_nothing):  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.2)
    while not over.is_set():
        await world.process_pool.downtime(world.rng.uniform(2.0, DOWN), over)
        await asyncio.sleep(world.rng.uniform(5.0, 20.0))


async def _lost_for_good(world: ProcessWorld, over: asyncio.Event) -> None:
    target = await world.process_pool.start("c")
    await asyncio.sleep(world.rng.uniform(4.0, 8.0))
    await world.process_pool.kill(target)
    await over.wait()


async def _pause_repeatedly(world: ProcessWorld, over: asyncio.Event) -> None:
    while not over.is_set():
        points = world.rng.sample(PAUSE_POINTS, len(PAUSE_POINTS))
        await _pause_once(world, over, "d", points, LEASE + world.rng.uniform(1.0, 5.0))
        await world.process_pool.kill(world.process_pool.targets["d"], world.rng.uniform(1.0, 4.0))


async def play_round(process_group: ProcessGroup, directory: Path, wanted: Round, seed: int) -> RoundResult:
    """Plays a round to its verdict. The processes' logs are in `directory`."""
    end = asyncio.get_running_loop().time() + wanted.seconds
    async with world(process_group, directory, wanted, seed) as made:

        def enough() -> bool:
            pool = made.process_pool
            if len(pool.pauses) >= wanted.pauses:
                return True
            enough_kills = len(pool.kills) >= wanted.kills or asyncio.get_running_loop().time() > end
            missed = min(pool.downtimes, made.workspace.faults.kept_nothing)
            return enough_kills and pool.at_points >= wanted.at_points and missed >= wanted.downtimes

        result = await play(made, wanted.disruption, enough=enough, pace=wanted.pace)
    result.verdict.logged += await asyncio.to_thread(_logged, directory, made)
    return result


def _logged(directory: Path, world: ProcessWorld) -> list[str]:
    """Returns what the processes of a world printed but should not have."""
    slack = world.workspace
    secrets = (KEY, slack.credentials.bot_token, slack.credentials.app_token, *world.signing_secrets)
    return faults_in_logs(directory.glob(f"{world.name}-*.log"), secrets)


async def new_sqlite(directory: Path, name: str) -> str:
    """The URL of a new database."""
    url = f"sqlite:///{directory}/{name}.sqlite3"
    await migrate(url)
    return url
