"""Polls a second in one process, and the CPU of each, side by side in one run: a bare httpx client over aiohttp, our
job client, and the poller over a real SQLite database, which looks at each job for the first time, again while nothing
changes, and after a restart.

    python tests/benchmarks/bench_polls.py [--jobs 10000] [--rounds 5]

All jobs are due; with fewer, the wait for the last ones to be saved counts for more. The job API runs in a process of
its own, so that only this one's CPU is counted. Each figure is the median of the rounds, and so is each comparison
within a round, because the speed of a shared machine doubles and halves within minutes.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import httpx
from httpx_aiohttp import AiohttpTransport
from pydantic import SecretStr

sys.path.insert(0, str(Path(__file__).parents[1]))

from sqlalchemy import text
from support.servers.instant_servers import instant_servers
from support.worlds.active_jobs import fill_with_active_jobs
from support.worlds.store_world import JOB

from bot.domain.jobs.poll_pace import Polling
from bot.jobapi.client import HttpJobApi
from bot.jobapi.settings import JobApiSettings
from bot.runtime.clock import SteadyClock
from bot.scheduler.job_poller import JobPoller
from bot.scheduler.worker import WorkerSettings
from bot.store.schema.migration import migrate
from bot.store.store import Store, Transaction, open_store


@dataclass(frozen=True)
class Figures:
    """Polls per second, and milliseconds of CPU per poll."""

    rate: float
    cpu: float


Ask = Callable[[int], Awaitable[object]]
_BASES = ("bare client", "client")
IN_FLIGHT = 50
"""Requests that a bare client makes at the same time."""


async def alone(ask: Ask, count: int) -> Figures:
    """Makes the same requests, and nothing else."""
    left = iter(range(count))

    async def work() -> None:
        for number in left:
            await ask(number)

    cpu, begin = time.process_time(), time.perf_counter()
    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    return _figures(count, cpu, begin)


async def polling(api: HttpJobApi, options: argparse.Namespace) -> dict[str, Figures]:
    """Polls and saves all jobs three times, the last time in a poller that has just started."""
    figures: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as directory:
        url = f"sqlite:///{directory}/bench.sqlite3"
        await migrate(url)
        await fill_with_active_jobs(url, options.jobs)
        store = await open_store(url)
        for start, looks in enumerate((("first", "again"), ("restarted",))):
            owner = f"bench-{start}"
            settings = WorkerSettings(owner, SteadyClock(), lease=30.0, call_timeout=20.0, on_commit=lambda _: None)
            poller = JobPoller(store, api, settings, polling=Polling(slowest=300.0))
            await store.transact(_all_due)
            running = asyncio.create_task(poller.run())
            for look in looks:
                await store.transact(_all_due)
                poller.wake()  # it may just have begun to wait
                figures[look] = await _until_polled(store, options.jobs)
            await poller.stop(5.0)
            await running
        await store.close()
    return figures


async def _until_polled(store: Store, count: int) -> Figures:
    cpu, begin = time.process_time(), time.perf_counter()
    while await _due(store):  # noqa: ASYNC110 - a database tells nobody of its changes
        await asyncio.sleep(0.1)
    return _figures(count, cpu, begin)


async def _all_due(tx: Transaction) -> None:
    connection = tx.session.connection
    await connection.execute(text("UPDATE polls SET due_at = :now"), {"now": tx.now})


async def _due(store: Store) -> bool:
    async def work(tx: Transaction) -> bool:
        connection = tx.session.connection
        found = await connection.execute(text("SELECT 1 FROM polls WHERE due_at <= :now LIMIT 1"), {"now": tx.now})
        return found.first() is not None

    return await store.transact(work)


def _figures(count: int, cpu: float, begin: float) -> Figures:
    return Figures(count / (time.perf_counter() - begin), (time.process_time() - cpu) / count * 1000)


async def compare(options: argparse.Namespace) -> None:
    async with instant_servers() as address, httpx.AsyncClient(transport=AiohttpTransport()) as session:
        settings = JobApiSettings(base_url=address, api_key=SecretStr("benchmark-key"))
        api = HttpJobApi({"docs": ("docs", settings)})

        async def bare(number: int) -> None:
            await session.get(f"{address}/v2/agent/docs/job/job-{number}", headers={"Authorization": "Bearer key"})

        await asyncio.gather(bare(0), api.get("docs", JOB.id))
        rounds: list[dict[str, Figures]] = []
        for _ in range(options.rounds):
            floor = await alone(bare, options.jobs)
            client = await alone(lambda number: api.get("docs", f"job-{number}"), options.jobs)
            rounds.append({"bare client": floor, "client": client} | await polling(api, options))
        for name in rounds[0]:
            rate, cpu = median(each[name].rate for each in rounds), median(each[name].cpu for each in rounds)
            of_bare, of_ours = (median(each[name].cpu / each[base].cpu for each in rounds) for base in _BASES)
            bare_rate, our_rate = (median(each[name].rate / each[base].rate for each in rounds) for base in _BASES)
            sys.stdout.write(
                f"{name:>12}: {rate:5.0f} a second (x{bare_rate:.2f} of the bare client, x{our_rate:.2f} of ours), "
                f"{cpu:.3f} ms of CPU each (x{of_bare:.2f}, x{of_ours:.2f})\n"
            )
        await api.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    asyncio.run(compare(parser.parse_args()))


if __name__ == "__main__":
    main()
