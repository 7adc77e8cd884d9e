"""The real application in a process that kills or pauses itself at a named point, to test the consequences.

`python tests/support/chaos/kill_target.py` runs it with the settings of its environment. It reports on its standard
output, a JSON object a line, that it began, passed its first point, and ends or goes on there.

A point is `<worker>.<call>.<moment>`. The workers are request_preparer, file_uploader, request_sender, job_poller,
pull_request_poller, outbox, home_publisher, history_reader, and listener for anything that Slack triggers. The calls
are those of the job API, the code hosts, the chat, the Slack look-ups and Homes, with the moments before and after; and
`take` and `record`, the transactions that claim work and all others, with the moments committing and committed.
KILL_TARGET_END_AT is `<kill or stop>:<point>#<occurrence, from 1>`.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, TypeVar, cast

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.chaos.kill_points import CALLED
from support.fakes.slack_limits import ANY_NUMBER, faster

from bot.app import application
from bot.app.edges import Edges
from bot.app.settings.config import load
from bot.domain.slack_limits import SLACK_LIMITS
from bot.ports.code_hosts import CodeHosts
from bot.ports.job_api import JobApi
from bot.ports.slack import (
    ChannelReader,
    Chat,
    Conversations,
    CurrentMessages,
    FileReader,
    Members,
    PastMessages,
)
from bot.runtime.logging import configure_logging
from bot.slack.sending.views import SlackViews
from bot.store.store import Store, Transaction

T = TypeVar("T")

END_AT = "KILL_TARGET_END_AT"
SLACK_PACE = "KILL_TARGET_SLACK_PACE"
"""The factor by which Slack's minute is shortened for the process's budget of rate limits; unset: no limits."""
WORKERS = {name.title().replace("_", ""): name for name in CALLED}
"""The worker's name in a point, by the name of its task. Everything it starts inherits its context."""
BY_ITSELF = frozenset({"RetentionSweeper", "Health", "DatabaseProbe", "Heartbeat"})
"""The names of tasks that nobody in Slack triggers and that handle no requests: they have their own points."""
_STARTS = "start"
"""The name of the task that starts the application, and notes that it listens."""
LATE = frozenset({"post", "post_card", "tell", "get"})
"""The calls whose late repetition would be visible; the last argument says of what."""
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}

_within: ContextVar[str] = ContextVar("worker", default="listener")


class Points:
    """Counts the points that are passed, and kills or pauses this process at the requested one."""

    def __init__(self, ending: str) -> None:
        how, _, where = ending.partition(":")
        point, _, occurrence = where.partition("#")
        self._signal = SIGNALS.get(how)
        self._point = point
        self._left = int(occurrence or 1)
        self.under_way: list[str] = []
        """The calls in progress: a post by its key, a poll by its job."""
        self._passed_any = False

    def reach(self, point: str) -> None:
        """Reports the end before it happens, since nobody could report it afterwards."""
        if not self._passed_any and self._signal is not None:
            self._passed_any = True
            tell(at_work=True)
        if point != self._point or self._signal is None:
            return
        self._left -= 1
        if self._left == 0:
            tell(at_point=point, under_way=self.under_way)
            os.kill(os.getpid(), self._signal)
            tell(went_on=point)


def tell(**facts: Any) -> None:
    """Writes one line at once."""
    line = {"pid": os.getpid(), "at": time.monotonic(), **facts}
    os.write(_report_to, json.dumps(line).encode() + b"\n")


_report_to = 2


@dataclass
class Pointed:
    """An edge whose every remote call passes a point before and after."""

    edge: Any
    points: Points

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call: Callable[..., Any] = getattr(self.edge, name)
        if not iscoroutinefunction(call):
            return call  # it asks nobody: there is no point to end at

        async def pointed(*arguments: Any, **options: Any) -> Any:
            point = f"{_worker()}.{name}"
            what = str(getattr(arguments[-1], "key", arguments[-1])) if name in LATE else ""
            self.points.reach(f"{point}.before")
            self.points.under_way.append(what)
            try:
                return await call(*arguments, **options)
            finally:
                self.points.under_way.remove(what)
                self.points.reach(f"{point}.after")

        return pointed


@dataclass
class PointedStore:
    """A store whose every writing transaction passes a point before and after its commit."""

    store: Store
    points: Points

    async def transact(self, work: Callable[[Transaction], Awaitable[T]], *, urgent: bool = False) -> T:
        taking = _task_name() in WORKERS
        point = f"{_worker()}.{'take' if taking else 'record'}"

        async def pointed(tx: Transaction) -> T:
            result = await work(tx)
            if result or not taking:
                self.points.reach(f"{point}.committing")
            return result

        result = await self.store.transact(pointed, urgent=urgent)
        if result or not taking:
            self.points.reach(f"{point}.committed")
        return result

    async def close(self) -> None:
        await self.store.close()


def _worker() -> str:
    """Returns the worker, or other origin, on whose behalf this runs."""
    name = _task_name()
    if name == _STARTS:
        return name  # without leaving it to the listeners, which it starts
    if name in WORKERS or name in BY_ITSELF:
        _within.set(WORKERS.get(name, name.lower()))
    return _within.get()


def _task_name() -> str:
    task = asyncio.current_task()
    return task.get_name() if task else ""


def run(environment: Mapping[str, str]) -> None:
    """Runs the application as `pagehand run` does, with its edges wrapped."""
    points = Points(environment.get(END_AT, ""))

    def decorate(edges: Edges) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.set_name(_STARTS)
        pace = environment.get(SLACK_PACE)
        limits = faster(SLACK_LIMITS, float(pace)) if pace else ANY_NUMBER
        edges.timings = replace(edges.timings, slack_limits=limits)
        edges.store = PointedStore(edges.store, points)
        edges.job_api = cast("JobApi", Pointed(edges.job_api, points))
        edges.code_hosts = cast("CodeHosts", Pointed(edges.code_hosts, points))
        edges.chat = cast("Chat", Pointed(edges.chat, points))
        members, channels = Pointed(edges.reading.members, points), Pointed(edges.reading.channels, points)
        edges.reading = replace(
            edges.reading,
            members=cast("Members", members),
            channels=cast("ChannelReader", channels),
            conversations=cast("Conversations", Pointed(edges.reading.conversations, points)),
            versions=cast("CurrentMessages", Pointed(edges.reading.versions, points)),
            files=cast("FileReader", Pointed(edges.reading.files, points)),
        )
        edges.history = cast("PastMessages", Pointed(edges.history, points))
        edges.modals = replace(edges.modals, views=cast("SlackViews", Pointed(edges.modals.views, points)))

    config = load(environment)
    configure_logging(config.log_level, config.secrets)
    asyncio.run(application.run(config, decorate=decorate))


def main() -> None:
    """Runs it once. Its standard output is for the reports, so whatever else is printed goes to its log."""
    global _report_to  # noqa: PLW0603 - the process's own
    _report_to = os.dup(1)
    os.dup2(2, 1)
    tell(began=True)
    run(os.environ)


if __name__ == "__main__":
    main()
