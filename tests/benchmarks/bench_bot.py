"""The whole bot beside a bare Bolt app that only acknowledges: how long slash commands wait for their answer, how many
starts a second are finished, and the CPU of each, side by side in one run.

    python tests/benchmarks/bench_bot.py [--rate 50] [--seconds 10] [--burst 100] [--rounds 2] [--database-url URL]

Commands arrive by a schedule over signed HTTP, whether those before were answered or not, and a latency counts from the
scheduled time. Slack and the job API answer at once, from a process of their own, as does each app: only the apps'
CPU is counted. A start is finished when its card was posted, its job created, its thread told and its card updated.
The burst arrives at a rate that is too much on purpose; the best of the rounds is taken, so that a busy machine
disturbs both alike.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import psutil  # type: ignore[import-untyped]  # it has no types of its own
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_sdk.web.async_client import AsyncWebClient

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.servers.app_under_load import PATH, SECRET, Load, environment, process
from support.servers.free_ports import free_port
from support.servers.instant_servers import instant_servers


@dataclass(frozen=True)
class Figures:
    """Latencies in milliseconds; CPU in milliseconds a command; `rate` is finished starts a second."""

    p50: float
    p99: float
    cpu: float
    rate: float = 0.0


async def counts(session: aiohttp.ClientSession, address: str) -> dict[str, int]:
    """What the world outside was asked so far."""
    async with session.get(f"{address}/counts") as response:
        return dict(await response.json())


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


async def measure_bare(options: argparse.Namespace, address: str) -> Figures:
    """Bare Bolt, at the schedule's rate."""
    port = free_port()
    async with (
        process(port, __file__, "--bare", f"{port},{address}") as app,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        load = Load(session, port)
        await load.run(20, 10)
        before, count = cpu_of(app), int(options.rate * options.seconds)
        latencies = await load.run(options.rate, count)
        return _figures(latencies, (cpu_of(app) - before) / count * 1000)


async def measure_bot(options: argparse.Namespace, address: str) -> tuple[Figures, Figures]:
    """The bot at the schedule's rate, and with the burst."""
    port = free_port()
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        url = options.database_url or f"sqlite:///{directory}/bench.sqlite3"
        env = environment(address, port, url, directory)
        async with (
            process(port, "-m", "bot", "run", env=env) as app,
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        ):
            await finished(Load(session, port), session, address, app, 20, 10)
            steady = await finished(
                Load(session, port), session, address, app, options.rate, int(options.rate * options.seconds)
            )
            burst = await finished(Load(session, port), session, address, app, options.burst, options.burst * 6)
        return steady, burst


async def finished(  # noqa: PLR0917 - what is measured
    load: Load, session: aiohttp.ClientSession, address: str, app: psutil.Process, rate: float, count: int
) -> Figures:
    """Sends commands, and waits till all of their starts are finished."""
    base = await counts(session, address)
    cpu, begin = cpu_of(app), time.perf_counter()
    latencies = await load.run(rate, count)
    while True:
        now = await counts(session, address)
        done = min(now.get(what, 0) - base.get(what, 0) for what in ("chat.postMessage in a thread", "chat.update"))
        if done >= count:
            break
        if time.perf_counter() - begin > 120:
            raise SystemExit(f"{count - done} starts are not finished: {now}")
        await asyncio.sleep(0.02)
    took = time.perf_counter() - begin
    return _figures(latencies, (cpu_of(app) - cpu) / count * 1000, count / took)


def _figures(latencies: list[float], cpu: float, rate: float = 0.0) -> Figures:
    parts = statistics.quantiles(latencies, n=100)
    return Figures(parts[49], parts[98], cpu, rate)


async def compare(options: argparse.Namespace) -> None:
    async with instant_servers() as address:
        for number in range(options.rounds):
            bolt = await measure_bare(options, address)
            steady, burst = await measure_bot(options, address)
            sys.stdout.write(f"round {number + 1}\n")
            at = f"at {options.rate:g} commands a second"
            sys.stdout.write(f"  bare Bolt {at}: p50 {bolt.p50:.1f} ms, p99 {bolt.p99:.1f} ms, {bolt.cpu:.1f} ms CPU\n")
            sys.stdout.write(
                f"  Pagehand  {at}: p50 {steady.p50:.1f} ms (x{steady.p50 / bolt.p50:.1f}), p99 {steady.p99:.1f} ms "
                f"(x{steady.p99 / bolt.p99:.1f}), {steady.cpu:.1f} ms CPU a start\n"
            )
            sys.stdout.write(
                f"  Pagehand, {options.burst * 6} commands at {options.burst:g} a second: p50 {burst.p50:.1f} ms, "
                f"p99 {burst.p99:.1f} ms, {burst.rate:.0f} starts a second finished, {burst.cpu:.1f} ms CPU a start\n"
            )
            sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--burst", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--database-url", default="")
    parser.add_argument("--directory", help="where the database's file is made")
    parser.add_argument("--bare", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        port, address = options.bare.split(",")
        bare(int(port), address)
    else:
        asyncio.run(compare(options))


if __name__ == "__main__":
    main()
