"""Background tasks: none is lost, and none is left behind."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest
from support.fakes.virtual_loop import VirtualLoop

from bot.runtime.tasks import BackgroundTasks

FAR = 10_000.0


def in_virtual_time(test: Callable[[BackgroundTasks], Awaitable[None]]) -> None:
    async def run() -> None:
        await test(BackgroundTasks(expected=LookupError))

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())


async def trip(fault: Exception) -> None:
    raise fault


async def double(number: int) -> int:
    return 2 * number


def test_a_task_can_be_awaited_and_is_forgotten_at_its_end() -> None:
    async def test(tasks: BackgroundTasks) -> None:
        task = tasks.spawn(double(4), name="doubling")
        assert (len(tasks), list(tasks), task.get_name()) == (1, [task], "doubling")
        assert await task == 8
        assert (len(tasks), list(tasks)) == (0, [])

    in_virtual_time(test)


def test_unexpected_task_failures_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def test(tasks: BackgroundTasks) -> None:
        tasks.spawn(trip(ValueError("tripped")), name="tripping")
        tasks.spawn(trip(KeyError("none")), name="looking up")
        tasks.spawn(asyncio.sleep(FAR), name="sleeping").cancel()
        await tasks.drain(1.0)

    in_virtual_time(test)
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.ERROR, "tripping ended unexpectedly")
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)


def test_draining_waits_for_tasks_spawned_meanwhile() -> None:
    async def test(tasks: BackgroundTasks) -> None:
        said: list[str] = []

        async def say() -> None:
            await asyncio.sleep(1.0)
            said.append("said")

        async def begin() -> None:
            await asyncio.sleep(1.0)
            tasks.spawn(say(), name="delivery")

        tasks.spawn(begin(), name="beginning")
        await tasks.drain(3.0)
        assert said == ["said"]
        assert asyncio.get_running_loop().time() == 2.0

    in_virtual_time(test)


@pytest.mark.parametrize("timeout", [0.0, 2.0])
def test_late_tasks_are_cancelled_and_awaited(timeout: float) -> None:
    async def test(tasks: BackgroundTasks) -> None:
        ended = False

        async def sleep() -> None:
            nonlocal ended
            try:
                await asyncio.sleep(FAR)
            finally:
                await asyncio.sleep(0.5)
                ended = True

        tasks.spawn(sleep(), name="sleeping")
        await asyncio.sleep(0)
        await tasks.drain(timeout)
        assert ended
        assert asyncio.get_running_loop().time() == timeout + 0.5

    in_virtual_time(test)


def test_a_cancelled_waiter_ends_no_task() -> None:
    async def test(tasks: BackgroundTasks) -> None:
        task = tasks.spawn(asyncio.sleep(5.0, "slept"), name="sleeping")
        draining = asyncio.create_task(tasks.drain(FAR))
        await asyncio.sleep(1.0)
        draining.cancel()
        await asyncio.wait({draining})
        assert draining.cancelled()
        assert await task == "slept"

    in_virtual_time(test)
