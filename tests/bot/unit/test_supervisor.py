"""A supervised task runs forever."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest
from support.fakes.virtual_loop import VirtualLoop

from bot.runtime.health.outages import RECOVERY_SECONDS
from bot.runtime.supervisor import RESTART_BACKOFF, Supervisor
from bot.runtime.tasks import log_fault

FAR = 10_000.0


def in_virtual_time(test: Callable[[], Awaitable[None]]) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(_awaited(test))


async def _awaited(test: Callable[[], Awaitable[None]]) -> None:
    await test()


async def trip() -> None:
    raise ValueError("tripped")


async def end() -> None:
    return


async def be_cancelled_within() -> None:
    inner = asyncio.create_task(asyncio.sleep(FAR))
    inner.cancel()
    await inner


@pytest.mark.parametrize(
    ("dies", "kind"), [(trip, "ValueError"), (end, "UnexpectedReturn"), (be_cancelled_within, "RuntimeError")]
)
def test_a_crashed_task_is_logged_shown_and_restarted(
    dies: Callable[[], Awaitable[None]], kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    starts = 0

    async def work() -> None:
        nonlocal starts
        starts += 1
        await (dies() if starts == 1 else asyncio.sleep(FAR))

    async def test() -> None:
        supervisor = Supervisor()
        supervisor.start("Retention", work)
        await asyncio.sleep(0.5)
        (part,) = supervisor.statuses()
        assert (part.name, part.reason) == ("Retention task", f"it ended unexpectedly ({kind})")
        assert part.failing_seconds == 0.5
        await asyncio.sleep(1.0)
        assert starts == 2
        assert list(supervisor.statuses()), "it has not worked for long"
        await asyncio.sleep(RECOVERY_SECONDS)
        assert not list(supervisor.statuses())
        await supervisor.stop(1.0)

    in_virtual_time(test)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage().startswith("Retention ended unexpectedly")
    assert record.exc_info is not None
    assert record.exc_info[0] is not None
    assert record.exc_info[0].__name__ == kind


def test_repeated_crashes_back_off_and_are_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    began: list[float] = []

    async def work() -> None:
        began.append(asyncio.get_running_loop().time())
        raise ValueError("tripped")

    async def test() -> None:
        supervisor = Supervisor()
        supervisor.start("JobPoller", work)
        await asyncio.sleep(400.0)
        (part,) = supervisor.statuses()
        assert part.failing_seconds == 400.0
        assert not part.ok()
        await supervisor.stop(1.0)

    in_virtual_time(test)
    pauses = [after - before for before, after in pairwise(began)]
    assert pauses[:7] == [1, 2, 4, 8, 16, 32, RESTART_BACKOFF.longest]
    assert set(pauses[7:]) == {RESTART_BACKOFF.longest}
    assert len(caplog.records) == 1


def test_a_task_that_ends_on_purpose_is_not_restarted(caplog: pytest.LogCaptureFixture) -> None:
    ended, starts = asyncio.Event(), 0

    async def work() -> None:
        nonlocal starts
        starts += 1
        await ended.wait()

    async def test() -> None:
        supervisor = Supervisor()
        well, ill = supervisor.start("RequestSender", work), supervisor.start("Retention", trip)
        await asyncio.sleep(0.5)
        supervisor.stop_restarting()
        ended.set()
        async with asyncio.timeout(0.1):  # a task waiting to be restarted is stopped, too
            await asyncio.gather(well, ill)
        assert starts == 1
        await supervisor.stop(1.0)

    in_virtual_time(test)
    assert len(caplog.records) == 1


def test_a_stop_ends_every_task() -> None:
    async def test() -> None:
        supervisor = Supervisor()
        tasks = [supervisor.start("Health", lambda: asyncio.sleep(FAR)) for _ in range(3)]
        await asyncio.sleep(0)
        await supervisor.stop(1.0)
        assert all(task.done() for task in tasks)
        assert not list(supervisor.statuses())

    in_virtual_time(test)


def test_a_background_task_logs_what_killed_it(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        for work in (trip, end):
            task = asyncio.create_task(_awaited(work), name=work.__name__)
            task.add_done_callback(log_fault)
            await asyncio.wait({task})

    in_virtual_time(test)
    assert [record.getMessage() for record in caplog.records] == ["trip ended unexpectedly"]
