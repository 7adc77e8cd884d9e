"""Our own processes that have imported what they need before their task arrives."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest
from support.worlds.jobserver_world import until

from bot.jobserver.subprocesses import BoundedWriter, LastBytes, ProcessTimeoutError
from bot.jobserver.warm_module import WarmModule

LARGE = b"x" * 1_000_000


@dataclass(frozen=True)
class World:
    """`mark` is in the command lines of this test's processes."""

    module: WarmModule
    mark: bytes

    async def run_task(self, task: bytes, *, time_limit: float = 30.0, code: int = 0) -> tuple[int, int]:
        """Returns the process's id, and the length of its task."""
        output, errors = BytesIO(), LastBytes(1000)
        ended = await self.module.run(task, time_limit=time_limit, stdout=BoundedWriter(output, 1000), stderr=errors)
        assert ended == code, errors.getvalue()
        pid, length = output.getvalue().split()
        return int(pid), int(length)

    def running(self) -> set[int]:
        return {int(process.name) for process in Path("/proc").glob("[0-9]*") if self.mark in _command(process)}

    async def only_one(self) -> int | None:
        """Returns the process that forks."""
        pids = self.running()
        return pids.pop() if len(pids) == 1 else None

    async def more(self) -> bool:
        return len(self.running()) > 2  # a task's, and the one that reports how it ends

    async def none(self) -> bool:
        return not self.running()


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.syspath_prepend(str(tmp_path))
    return World(WarmModule("support.pid_worker"), str(tmp_path).encode())


@pytest.fixture
async def warm(cold: World) -> AsyncIterator[World]:
    cold.module.keep_warm()
    yield cold
    cold.module.close()


async def test_each_task_has_its_own_process(warm: World) -> None:
    """No process gets a second task, however large the first is, even concurrently."""
    told = await asyncio.gather(warm.run_task(LARGE), warm.run_task(b"more"), warm.run_task(b"more"))
    assert [length for _, length in told] == [len(LARGE), 4, 4]
    assert len({pid for pid, _ in told} | {(await warm.run_task(b"more"))[0]}) == 4


async def test_the_tasks_exit_code_is_returned(warm: World) -> None:
    """The leak scan uses it to say why it gave up."""
    await warm.run_task(b"fail", code=7)


async def test_a_dead_fork_server_is_replaced(warm: World) -> None:
    """As when memory is short."""
    before = await until(warm.only_one)
    os.kill(before, signal.SIGKILL)
    assert (await warm.run_task(LARGE))[1] == len(LARGE)
    assert await until(warm.only_one) != before


async def test_a_task_is_limited_in_time_and_leaves_nothing(warm: World) -> None:
    """Like any other process; and none is left in the end."""
    with pytest.raises(ProcessTimeoutError):
        await warm.run_task(b"for ever", time_limit=0.5)
    warm.module.close()
    await until(warm.none)


async def test_a_cancelled_task_leaves_nothing(warm: World) -> None:
    """Its process ends with it; the one that forks is kept."""
    task = asyncio.create_task(warm.run_task(b"for ever"))
    await until(warm.more)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await until(warm.only_one)


async def test_without_warming_tasks_work_and_leave_nothing(cold: World) -> None:
    """As for an occasional task."""
    assert (await cold.run_task(b"four"))[1] == 4
    await until(cold.none)
