"""Ready-made trouble, and a run of it on either database."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chaos.crew import POINTS, Nursery, ending_at
from chaos.scenario import Outcome, Trouble, play
from chaos.world import LEASE, World, world
from leaks import faults_in_logs
from ledger import KEY, Operation, cut, refusing, truncated

from bot.store.schema import migrate

_SHM = Path("/dev/shm")  # noqa: S108 - a directory in memory: much is written, and a disk has nothing to do with it
IN_MEMORY = _SHM if _SHM.is_dir() else None
POINTS_OF_SLEEP = tuple(point for point in POINTS if not point.endswith(".before"))
"""All but those between the last look at the lease and the call: nothing can keep a call from going out late there. For
the same reason nobody is stopped at a random moment.
"""
PATIENCE = 8.0
"""Seconds to wait for a process to reach its point: some are seldom reached."""


async def one_instance(world: World, over: asyncio.Event) -> None:
    """One process, killed and started again and again."""
    await world.crew.haunt("a", over)


async def three_instances(world: World, over: asyncio.Event) -> None:
    """Two are killed and started again and again; the third is killed once, and never started again."""
    await asyncio.gather(world.crew.haunt("a", over), world.crew.haunt("b", over), _lost_for_good(world, over))


async def three_instances_and_a_sleeper(world: World, over: asyncio.Event) -> None:
    """And a fourth that is stopped for longer than any lease, over and over."""
    await asyncio.gather(three_instances(world, over), _sleeper(world, over))


async def sleepers(world: World, over: asyncio.Event) -> None:
    """Two processes work on while three stop themselves, each at a point of its own, for longer than any lease."""
    for well in ("well-1", "well-2"):
        await world.crew.start(well)
    points = world.rng.sample(POINTS_OF_SLEEP, len(POINTS_OF_SLEEP))
    await asyncio.gather(*(_sleep(world, over, f"sleeper-{n}", points, LEASE + 2.0) for n in range(3)))
    await over.wait()


async def _sleep(world: World, over: asyncio.Event, instance: str, points: list[str], seconds: float) -> None:
    """Has a process stop itself at the first of the points that one reaches; one that does not is replaced."""
    while not over.is_set():
        life = await world.crew.start(instance, ending_at("stop", points.pop(), 2))
        try:
            await asyncio.wait_for(life.at_point.wait(), PATIENCE)
        except TimeoutError:
            await world.crew.kill(life)
        else:
            await world.crew.pause(life, seconds)
            return


def with_faults(trouble: Trouble) -> Trouble:
    """The same, while Slack and the polls of the job API fail every other second."""

    async def both(world: World, over: asyncio.Event) -> None:
        await asyncio.gather(trouble(world, over), _faults(world, over))

    return both


async def _faults(world: World, over: asyncio.Event) -> None:
    slack, ledger = world.workspace.faults, world.ledger
    kinds: list[Callable[[], object]] = [
        lambda: slack.rate_limit(1),
        lambda: slack.server_error(method="chat.postMessage"),
        lambda: slack.server_error(applied=True, method="chat.postMessage"),
        lambda: slack.drop(applied=True, method="chat.postMessage"),
        lambda: slack.drop(applied=True, method="chat.update"),
        lambda: slack.server_error(applied=True, method="reactions.add"),
        lambda: slack.duplicate_envelope("events_api"),
        lambda: slack.drop_ack("events_api"),
        world.workspace.socket_mode.cut,
        lambda: ledger.fail(refusing(503, Retry_After="1"), Operation.GET),
        lambda: ledger.fail(refusing(404), Operation.GET),
        lambda: ledger.fail(cut(applied=True), Operation.GET),
        lambda: ledger.fail(truncated(), Operation.GET),
    ]
    while not over.is_set():
        await asyncio.sleep(world.rng.uniform(1.0, 3.0))
        world.rng.choice(kinds)()
        world.faults += 1


async def _lost_for_good(world: World, over: asyncio.Event) -> None:
    life = await world.crew.start("c")
    await asyncio.sleep(world.rng.uniform(4.0, 8.0))
    await world.crew.kill(life)
    await over.wait()


async def _sleeper(world: World, over: asyncio.Event) -> None:
    while not over.is_set():
        points = world.rng.sample(POINTS_OF_SLEEP, len(POINTS_OF_SLEEP))
        await _sleep(world, over, "d", points, LEASE + world.rng.uniform(1.0, 5.0))
        await world.crew.kill(world.crew.lives["d"], world.rng.uniform(1.0, 4.0))


@dataclass(frozen=True)
class Round:
    """A world and the trouble it gets, till so many kills (so many of them at named points) or pauses are done, or so
    many seconds have passed.

    `pace` is in seconds from one errand to the next. `database` is the URL of one with tables and without rows. With
    `http`, Slack calls the one process that there is.
    """

    name: str
    database: str
    trouble: Trouble
    idempotent: bool
    kills: float
    seconds: float
    pace: float = 1.0
    pauses: float = float("inf")
    at_points: int = 0
    http: bool = False


async def play_round(nursery: Nursery, directory: Path, wanted: Round, seed: int) -> Outcome:
    """Plays a round to its verdict. The processes' logs are in `directory`."""
    idempotent, end = wanted.idempotent, asyncio.get_running_loop().time() + wanted.seconds
    async with world(
        nursery, wanted.database, directory, wanted.name, idempotent=idempotent, seed=seed, http=wanted.http
    ) as made:

        def enough() -> bool:
            enough_kills = len(made.crew.kills) >= wanted.kills and made.crew.at_points >= wanted.at_points
            return enough_kills or len(made.crew.pauses) >= wanted.pauses or asyncio.get_running_loop().time() > end

        outcome = await play(made, wanted.trouble, enough=enough, pace=wanted.pace)
    outcome.verdict.logged += await asyncio.to_thread(_logged, directory, made)
    return outcome


def _logged(directory: Path, world: World) -> list[str]:
    """What the processes of a world printed that they should not have."""
    slack = world.workspace
    secrets = (KEY, slack.bot_token, slack.app_token, slack.signing_secret)
    return faults_in_logs(directory.glob(f"{world.name}-*.log"), secrets)


async def new_sqlite(directory: Path, name: str) -> str:
    """The URL of a new database."""
    url = f"sqlite:///{directory}/{name}.sqlite3"
    await migrate(url)
    return url
