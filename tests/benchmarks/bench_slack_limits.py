"""The bot with a Slack that enforces its limits: how many calls are refused, and how long people wait.

    python tests/benchmarks/bench_slack_limits.py [--replies 90] [--starts 10 60] [--seconds 60] [--jobs 120]

The workspace counts calls by the strictest reading of Slack's documentation: calls of a method in any minute, by its
tier, and three posts in any three seconds in a channel. The replies go to three jobs in a channel each, by two people
in turn; the starts all go to one channel. It prints how many calls were refused and accepted, the most attempts of one
call, and the wait in seconds: from a reply to its check mark, and from a command to its start notice. A reply waits up
to three seconds on purpose, for others to be merged with it. The jobs are asked for within 6 seconds in three channels,
at a job API that can cancel: they wait from the command to their creation, and a stop from the button on Home, pressed
once all were created, to the cancel.
"""

import argparse
import asyncio
import math
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.worlds.app_world import AppWorld, a_world

from bot.app.edges import EdgeTimings
from bot.store.schema.migration import migrate

CHANNELS = ("docs", "general", "leads")
PEOPLE = ("ana", "ben")
PATIENCE = 240.0
BURST = 6.0
"""Seconds."""


@dataclass(frozen=True)
class Figures:
    """The outcomes of the calls, and how long people waited."""

    refused: int
    taken: int
    tries: int
    waits: Sequence[float]

    def line(self, name: str) -> str:
        """One line of the table."""
        median, worst = statistics.median(self.waits), max(self.waits)
        most = sorted(self.waits)[math.ceil(0.95 * len(self.waits)) - 1]
        counts = f"{self.refused:>8}{self.taken:>7}{self.tries:>7}"
        return f"{name:<28}{counts}{median:>9.1f}{most:>8.1f}{worst:>8.1f}\n"


@asynccontextmanager
async def running(url: str, **settings: Any) -> AsyncIterator[AppWorld]:
    """The bot with a new database, beside a Slack with limits."""
    await migrate(url)
    async with a_world(
        url,
        edge_timings=EdgeTimings(),
        rate_limited=True,
        PAGEHAND_MERGE_SECONDS="3",
        PAGEHAND_POLL_FASTEST="1",
        PAGEHAND_POLL_SLOWEST="5",
        **settings,
    ) as world:
        await world.start()
        yield world


async def replies(url: str, count: int, seconds: float) -> Figures:
    """Sends replies to running jobs, at an even pace."""
    async with running(url) as world:
        world.workspace.channels.add_bot("leads")
        for channel in CHANNELS:
            await world.begin(f"Fix {channel}", channel=channel)
        before, written = len(world.workspace.web_api.calls), {}
        for number in range(count):
            channel, person = CHANNELS[number % len(CHANNELS)], PEOPLE[number // len(CHANNELS) % 2]
            said = await world.reply(f"Fix {channel}", f"Change {number}", channel=channel, person=person)
            written[said.ts] = time.time()
            await asyncio.sleep(seconds / count)
        marked = await _until_marked(world, list(written))
        return _figures(world, before, [marked[ts] - at for ts, at in written.items()])


async def starts(url: str, count: int, seconds: float) -> Figures:
    """Sends commands in one channel, at an even pace."""
    async with running(url) as world:
        asked = {}
        for number in range(count):
            await world.ask(f"Do {number} of them")
            asked[f"Do {number} of them"] = time.time()
            await asyncio.sleep(seconds / count)
        waits = []
        for prompt, at in asked.items():
            await world.until_said(prompt, "started", seconds=PATIENCE)
            waits.append(float(world.thread(prompt)[1].ts) - at)
        return _figures(world, 0, waits)


async def jobs(url: str, count: int, seconds: float) -> Figures:
    """Sends commands in several channels within a few seconds, and stops one of the jobs without a card on Home."""
    async with running(url, JOB_API_CANCEL="true") as world:
        world.workspace.channels.add_bot("leads")
        await world.workspace.people["ana"].views.open_home()
        begun, asked = time.monotonic(), {}
        for number in range(count):
            prompt = f"Do {number} of them"
            asked[prompt] = time.monotonic()
            await world.ask(prompt, channel=CHANNELS[number % len(CHANNELS)], person=PEOPLE[number % 2])
            await asyncio.sleep(max(begun + (number + 1) * seconds / count - time.monotonic(), 0.0))
        await world.fake_job_api.until(lambda: len(world.fake_job_api.created) == count, PATIENCE)
        waits = [entry.at - asked[entry.prompt] for entry in world.fake_job_api.created]
        all_at = max(entry.at for entry in world.fake_job_api.created) - begun
        stopped = await _stopped_on_home(world)
        sys.stdout.write(f"  all jobs after {all_at:.1f} s; a stop on Home took {stopped:.2f} s\n")
        return _figures(world, 0, waits)


async def _stopped_on_home(world: AppWorld) -> float:
    """Returns the seconds from the button on Home to the cancel."""
    views, job_api = world.workspace.people["ana"].views, world.fake_job_api
    await world.workspace.changes.wait_for(lambda: "home_stop" in str(views.home()), PATIENCE)
    begun = time.monotonic()
    await views.press("home_stop")
    await job_api.until(lambda: job_api.cancelled, PATIENCE)
    return time.monotonic() - begun


async def _until_marked(world: AppWorld, replies: Sequence[str]) -> dict[str, float]:
    """Returns when each reply got its check mark."""

    def marked() -> dict[str, float]:
        calls = world.workspace.web_api.calls
        added = (call for call in calls if call.method == "reactions.add" and call.applied)
        return {call.args["timestamp"]: call.at for call in added if call.args["name"] == "white_check_mark"}

    await world.workspace.changes.wait_for(lambda: set(replies) <= set(marked()), PATIENCE)
    return marked()


def _figures(world: AppWorld, before: int, waits: Sequence[float]) -> Figures:
    calls = world.workspace.web_api.calls[before:]
    refused = sum(call.error == "ratelimited" for call in calls)
    tries = Counter((call.method, call.args.get("timestamp"), call.args.get("name")) for call in calls)
    marks = [count for (method, _, _), count in tries.items() if method.startswith("reactions.")]
    return Figures(refused, sum(call.applied for call in calls), max(marks, default=1), waits)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--replies", type=int, default=90)
    arguments.add_argument("--starts", type=int, nargs="*", default=[10, 60])
    arguments.add_argument("--jobs", type=int, default=120)
    arguments.add_argument("--seconds", type=float, default=60.0)
    options = arguments.parse_args()
    sys.stdout.write(f"{'':<28}{'refused':>8}{'taken':>7}{'tries':>7}{'median':>9}{'95 %':>8}{'worst':>8}\n")
    runs = [("replies", replies, options.replies)] if options.replies else []
    runs += [("starts in one channel", starts, count) for count in options.starts]
    runs += [("jobs", jobs, options.jobs)] if options.jobs else []
    for name, run, count in runs:
        seconds = BURST if run is jobs else options.seconds
        with tempfile.TemporaryDirectory() as directory:
            figures = asyncio.run(run(f"sqlite:///{directory}/bench.sqlite3", count, seconds))
        sys.stdout.write(figures.line(f"{count} {name} in {seconds:.0f} s"))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
