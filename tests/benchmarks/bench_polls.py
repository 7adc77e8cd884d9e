"""Polls a second in one process, and the CPU of each: the watch over a real SQLite database, and the job client alone,
side by side in one run.

    python tests/benchmarks/bench_polls.py [--jobs 5000] [--rounds 2] [--in-flight 50] [--delay 0]

All jobs are due. The job API runs in a process of its own, so that only this one's CPU is counted, and answers after
`--delay` seconds.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

sys.path.insert(0, str(Path(__file__).parents[1]))

from sqlalchemy import insert, text
from support.servers.instant_servers import instant_servers
from support.worlds.store_world import JOB, a_thread

from bot.domain.notices import keys
from bot.domain.observe import Polling
from bot.domain.threads import ThreadState
from bot.jobs.client import HttpJobApi
from bot.jobs.settings import JobApiSettings
from bot.ports import Store, Transaction
from bot.runtime.clock import SteadyClock
from bot.scheduler.job_poller import JobPoller
from bot.scheduler.worker import WorkerSettings
from bot.store.database.engine import engine_for
from bot.store.schema.migration import migrate
from bot.store.schema.rows import thread_values
from bot.store.schema.tables import polls, threads
from bot.store.store import open_store


@dataclass(frozen=True)
class Figures:
    """Polls a second, and milliseconds of CPU a poll."""

    rate: float
    cpu: float


async def fill(url: str, count: int) -> None:
    """So many jobs that have been at rest for long, all due."""
    now = time.time() - 10.0
    state = ThreadState(job=JOB, changed_at=now - 3_600.0, announced=frozenset({keys.JOB_STARTED}))
    everything = [a_thread(f"t{n}", ts=f"{n}.1", state=state, prompt="Do it. " * 20) for n in range(count)]
    engine = engine_for(url)
    async with engine.begin() as connection:
        rows = [thread_values(thread) | {"updated_at": now} for thread in everything]
        await connection.execute(insert(threads), rows)
        await connection.execute(insert(polls), [{"thread_id": thread.id, "due_at": now} for thread in everything])
    await engine.dispose()


async def client_alone(api: HttpJobApi, count: int, in_flight: int) -> Figures:
    """The same requests, and nothing else."""
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            await api.get("docs", JOB.id)

    cpu, begin = time.process_time(), time.perf_counter()
    await asyncio.gather(*(work() for _ in range(in_flight)))
    return _figures(count, cpu, begin)


async def watching(api: HttpJobApi, count: int, in_flight: int | None) -> Figures:
    """All jobs are polled once, and saved."""
    with tempfile.TemporaryDirectory() as directory:
        url = f"sqlite:///{directory}/bench.sqlite3"
        await migrate(url)
        await fill(url, count)
        store = await open_store(url)
        settings = WorkerSettings("bench", SteadyClock(), lease=30.0, call_timeout=20.0, on_commit=lambda: None)
        options = {} if in_flight is None else {"concurrency": in_flight}
        watch = JobPoller(store, api, settings, polling=Polling(slowest=300.0), **options)
        cpu, begin = time.process_time(), time.perf_counter()
        running = asyncio.create_task(watch.run())
        while await _due(store):  # noqa: ASYNC110 - a database tells nobody of its changes
            await asyncio.sleep(0.1)
        figures = _figures(count, cpu, begin)
        await watch.stop(5.0)
        await running
        await store.close()
    return figures


async def _due(store: Store) -> bool:
    async def work(tx: Transaction) -> bool:
        connection = tx.session.connection  # type: ignore[attr-defined]
        found = await connection.execute(text("SELECT 1 FROM polls WHERE due_at <= :now LIMIT 1"), {"now": tx.now})
        return found.first() is not None

    return await store.transact(work)


def _figures(count: int, cpu: float, begin: float) -> Figures:
    return Figures(count / (time.perf_counter() - begin), (time.process_time() - cpu) / count * 1000)


async def compare(options: argparse.Namespace) -> None:
    async with instant_servers(options.delay) as address:
        api = HttpJobApi(JobApiSettings(base_url=address, api_key=SecretStr("benchmark-key")))
        await api.get("docs", JOB.id)
        for number in range(options.rounds):
            alone = await client_alone(api, options.jobs, options.in_flight or 50)
            whole = await watching(api, options.jobs, options.in_flight)
            sys.stdout.write(
                f"round {number + 1}:  client alone {alone.rate:.0f} polls a second, {alone.cpu:.2f} ms CPU a poll   "
                f"watch {whole.rate:.0f} (x{whole.rate / alone.rate:.2f}), {whole.cpu:.2f} ms "
                f"(x{whole.cpu / alone.cpu:.2f})\n"
            )
            sys.stdout.flush()
        await api.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--in-flight", type=int)
    parser.add_argument("--delay", type=float, default=0.0)
    asyncio.run(compare(parser.parse_args()))


if __name__ == "__main__":
    main()
