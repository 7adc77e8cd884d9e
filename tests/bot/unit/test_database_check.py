"""How the probe judges a database that is slow, away, or healthy; in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from support.fakes.virtual_loop import VirtualLoop

from bot.errors import StoreUnavailable
from bot.runtime.health.outages import RECORDING_RECOVERY_SECONDS, RecordingHealth
from bot.scheduler.database_check import PROBE_EVERY, PROBE_RETRY, SLOW_WRITE, DatabaseProbe


class Database:
    """The store's interface: each write takes `seconds`, and then raises the fault."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.fault: Exception | None = None
        self.began: list[float] = []

    async def transact(self, work: Callable[[Any], Awaitable[Any]], *, urgent: bool = False) -> Any:
        self.began.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.seconds)
        if self.fault is not None:
            raise self.fault

    async def close(self) -> None:
        """Does nothing."""


def checking(story: Callable[[Database, RecordingHealth], Awaitable[None]]) -> None:
    """Runs a scenario while the probe is running."""

    async def told() -> None:
        database, recording_health = Database(), RecordingHealth(asyncio.get_running_loop().time)
        running = asyncio.create_task(DatabaseProbe(database, recording_health, watching_jobs=False).run())
        await story(database, recording_health)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert len(asyncio.all_tasks()) == 1, "a write that is under way ends, too"

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(told())


def test_the_probe_writes_periodically_and_sooner_after_a_failure() -> None:
    async def story(database: Database, recording_health: RecordingHealth) -> None:
        await asyncio.sleep(1.5 * PROBE_EVERY)
        assert recording_health.status().ok()
        database.fault = StoreUnavailable("The database's disk is full.")
        await asyncio.sleep(PROBE_EVERY)
        assert not recording_health.status().ok()
        await asyncio.sleep(2 * PROBE_RETRY)
        assert database.began[:4] == [0, PROBE_EVERY, 2 * PROBE_EVERY, 2 * PROBE_EVERY + PROBE_RETRY]
        database.fault = None
        await asyncio.sleep(1.5 * PROBE_RETRY)
        assert recording_health.status().ok()
        await asyncio.sleep(RECORDING_RECOVERY_SECONDS)
        assert not recording_health.failing()

    checking(story)


def test_a_slow_write_counts_before_it_ends() -> None:
    async def story(database: Database, recording_health: RecordingHealth) -> None:
        database.seconds = 100.0
        await asyncio.sleep(SLOW_WRITE + 1)
        assert recording_health.status().reason == "The database did not take a write in 5 s."
        assert not recording_health.status().ok()
        assert len(database.began) == 1

    checking(story)
