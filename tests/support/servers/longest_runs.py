"""Measures how long an event loop, and SQLite's thread, run without a pause: in CPU time, which does
not depend on other load.
"""

import asyncio
import gc
import inspect
import json
import os
import signal
import time
from asyncio import events
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import psutil  # type: ignore[import-untyped]  # it has no types of its own

from bot.store.database.sqlite_thread import UnitOfWork

FILE = "BENCHMARK_LONGEST_RUNS"
"""The variable that names the file to which a process writes its longest runs on SIGUSR1."""


class LongestRuns:
    """The longest runs by what ran, in milliseconds of the thread's CPU time; read once and reset."""

    def __init__(self) -> None:
        self._began = 0.0
        self._longest: dict[str, float] = {}
        self._count = 0

    def watch(self, path: Path) -> None:
        """Measures each callback of every loop, each unit of SQLite's thread, and the garbage collector."""
        events.Handle._run = self._timed(events.Handle._run, lambda handle: f"loop: {_name(handle)}")  # type: ignore[method-assign]  # what all loops call
        UnitOfWork.run = self._timed(UnitOfWork.run, lambda unit: f"database: {_where(unit.work)}")  # type: ignore[method-assign]  # as above
        gc.callbacks.append(self._collected)
        signal.signal(signal.SIGUSR1, lambda *_: self._tell(path))

    def _timed(self, run: Callable[..., None], name: Callable[[Any], str]) -> Callable[..., None]:
        def timed(subject: Any, *arguments: Any) -> None:
            began = time.thread_time()
            run(subject, *arguments)
            taken = (time.thread_time() - began) * 1000
            if taken > 1.0:
                self._note(name(subject), taken)

        return timed

    def _collected(self, phase: str, info: Mapping[str, int]) -> None:
        if phase == "start":
            self._began = time.thread_time()
        else:
            self._note(f"gc: generation {info['generation']}", (time.thread_time() - self._began) * 1000)

    def _note(self, name: str, taken: float) -> None:
        self._longest[name] = max(self._longest.get(name, 0.0), taken)

    def _tell(self, path: Path) -> None:
        longest = sorted(self._longest.items(), key=lambda item: -item[1])
        self._longest = {}
        self._count += 1
        scratch = path.with_suffix(".new")
        scratch.write_text(json.dumps([self._count, longest]))
        scratch.replace(path)


def _name(handle: Any) -> str:
    """Returns the coroutine of a task's step, innermost last; otherwise the callback."""
    task = getattr(handle._callback, "__self__", None)
    if not isinstance(task, asyncio.Task):
        return _where(handle._callback)
    return _where(task.get_coro())


def _where(what: Any) -> str:
    """The purpose of a unit of the store is in the closure of its caller."""
    closure = inspect.getclosurevars(what).nonlocals if inspect.isfunction(what) else {}
    if "work" in closure:
        return _where(closure["work"])
    return str(getattr(what, "__qualname__", type(what).__name__))


async def longest_runs_of(app: psutil.Process, path: Path) -> Mapping[str, float]:
    """Returns the longest runs of a process since the last request, the longest first."""
    before = _read(path)
    os.kill(app.pid, signal.SIGUSR1)
    async with asyncio.timeout(30.0):
        while (told := _read(path)) == before:  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
    return dict(told[1])


def _read(path: Path) -> tuple[int, list[tuple[str, float]]]:
    return (
        cast("tuple[int, list[tuple[str, float]]]", tuple(json.loads(path.read_text()))) if path.exists() else (0, [])
    )
