"""The whole bot beside a bare Bolt app that only acknowledges: how long slash commands wait for their answer, and the
CPU of each, side by side in one run.

    python tests/benchmarks/bench_bot.py [--rates 50 5] [--seconds 10] [--burst 100] [--jobs 0 10000] [--rounds 2]

Commands arrive by a schedule over signed HTTP, whether those before were answered or not, and a latency counts from the
scheduled time. Slack and the job API answer at once, from a process of their own, as does each app: only the apps'
CPU is counted. Beside so many `--jobs`, all at rest and polled every 30 s. How fast starts are carried out is a matter
of Slack's limits, and not measured. The best of the rounds is taken, so that a busy machine disturbs both alike.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import psutil  # type: ignore[import-untyped]  # it has no types of its own
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_sdk.web.async_client import AsyncWebClient

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.servers.app_under_load import BOT_WITHOUT_LIMITS, PATH, SECRET, Load, environment, process
from support.servers.free_ports import free_port
from support.servers.instant_servers import instant_servers
from support.worlds.active_jobs import fill_with_active_jobs

from bot.store.schema.migration import migrate


@dataclass(frozen=True)
class Figures:
    """Latencies in milliseconds; CPU in milliseconds per command."""

    p50: float
    p99: float
    cpu: float


def bare(port: int, address: str) -> None:
    """A Bolt app that only acknowledges."""
    client = AsyncWebClient(token="xoxb-benchmark", base_url=f"{address}/api/")
    app = AsyncApp(client=client, signing_secret=SECRET)

    async def only_ack(ack: AsyncAck) -> None:
        await ack("On it.")

    app.command("/docs")(only_ack)
    app.server(port=port, path=PATH, host="127.0.0.1").start()


def cpu_of(app: psutil.Process) -> float:
    return float(sum(app.cpu_times()[:2]))


async def measure(load: Load, app: psutil.Process, rate: float, count: int) -> Figures:
    """Sends these commands at this rate."""
    before = cpu_of(app)
    latencies = await load.run(rate, count)
    parts = statistics.quantiles(latencies, n=100)
    return Figures(parts[49], parts[98], (cpu_of(app) - before) / count * 1000)


async def measured(
    options: argparse.Namespace,
    arguments: Sequence[str],
    port: int,
    *,
    env: dict[str, str] | None = None,
    settle: float = 0.0,
) -> list[Figures]:
    """Runs an app at each rate, and with the burst."""
    connector = aiohttp.TCPConnector(limit=0)
    async with process(port, *arguments, env=env) as app, aiohttp.ClientSession(connector=connector) as session:
        load = Load(session, port)
        await measure(load, app, 20, 10)
        await asyncio.sleep(settle)
        figures = [await measure(load, app, rate, max(int(rate * options.seconds), 2)) for rate in options.rates]
        return [*figures, await measure(load, app, options.burst, options.burst * 3)]


async def measure_bare(options: argparse.Namespace, address: str) -> list[Figures]:
    """Measures bare Bolt."""
    port = free_port()
    return await measured(options, (__file__, "--bare", f"{port},{address}"), port)


async def measure_bot(options: argparse.Namespace, address: str, jobs: int) -> list[Figures]:
    """Measures the bot beside these jobs."""
    port = free_port()
    with tempfile.TemporaryDirectory() as directory:
        url = f"sqlite:///{directory}/bench.sqlite3"
        await migrate(url)
        await fill_with_active_jobs(url, jobs, due_over=30.0)
        polling = {"PAGEHAND_POLL_FASTEST": "2", "PAGEHAND_POLL_SLOWEST": "30"} if jobs else {}
        env = environment(address, port, url, directory) | polling
        settle = options.settle if jobs else 0.0
        return await measured(options, (BOT_WITHOUT_LIMITS,), port, env=env, settle=settle)


def better(one: Figures, other: Figures) -> Figures:
    """Returns the better of both in each value."""
    return Figures(min(one.p50, other.p50), min(one.p99, other.p99), min(one.cpu, other.cpu))


async def compare(options: argparse.Namespace) -> None:
    best: dict[str, list[Figures]] = {}
    async with instant_servers() as address:
        for _ in range(options.rounds):
            found = {"bare Bolt": await measure_bare(options, address)}
            for jobs in options.jobs:
                found[f"Pagehand beside {jobs} jobs"] = await measure_bot(options, address, jobs)
            for name, figures in found.items():
                best[name] = [better(*pair) for pair in zip(figures, best.get(name, figures), strict=True)]
    for number, rate in enumerate([*options.rates, options.burst]):
        sys.stdout.write(f"{rate:g} commands a second\n")
        floor = best["bare Bolt"][number]
        for name, all_of_it in best.items():
            each = all_of_it[number]
            sys.stdout.write(
                f"  {name:28} p50 {each.p50:6.1f} ms (x{each.p50 / floor.p50:.1f}), p99 {each.p99:6.1f} ms "
                f"(x{each.p99 / floor.p99:.1f}), {each.cpu:6.1f} ms of CPU a command\n"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=float, nargs="+", default=[50.0, 5.0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--burst", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--jobs", type=int, nargs="+", default=[0, 10_000])
    parser.add_argument("--settle", type=float, default=40.0, help="seconds in which each job is polled once before")
    parser.add_argument("--bare", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        port, address = options.bare.split(",")
        bare(int(port), address)
    else:
        asyncio.run(compare(options))


if __name__ == "__main__":
    main()
