"""Retention over many old jobs: how many are deleted a second, and how long commands wait for their answer beside it.

    python tests/benchmarks/bench_retention.py [--jobs 100000] [--rate 20] [--seconds 10] [--rounds 4]
                                               [--databases sqlite postgresql]

Commands are recorded at this rate, with and without the sweeper running, in turns. Printed are the latencies of both,
their ratio, what was deleted, and the CPU of this process for each deleted job.
"""

import argparse
import asyncio
import logging
import secrets
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from sqlalchemy import text
from support.databases import engine_for
from support.servers.postgres import PostgresServer, postgres_server
from support.worlds.finished_jobs import fill, vacuum

from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Person, WayIn
from bot.scheduler.retention import RetentionSweeper
from bot.service import Service
from bot.store.schema.migration import migrate
from bot.store.store import Store, Transaction, open_store

ANA = Person("UANA", "T1")


@dataclass
class Taken:
    """What all turns of one kind took: latencies in milliseconds, seconds, and seconds of CPU."""

    latencies: list[float] = field(default_factory=list)
    seconds: float = 0.0
    cpu: float = 0.0

    def percentile(self, part: int) -> float:
        return statistics.quantiles(self.latencies, n=100)[part - 1]


async def commands(store: Store, options: argparse.Namespace, taken: Taken) -> None:
    """Records commands by a schedule, whether those before were recorded or not."""
    service = Service(store, on_commit=lambda: None)
    cpu, begin = time.process_time(), time.perf_counter()

    async def one(at: float) -> None:
        await service.start(NewJob(ANA, "CBENCH", "Fix the spelling", secrets.token_hex(8), WayIn.COMMAND))
        taken.latencies.append((time.perf_counter() - at) * 1000)

    async with asyncio.TaskGroup() as tasks:
        for number in range(int(options.rate * options.seconds)):
            at = begin + number / options.rate
            await asyncio.sleep(max(at - time.perf_counter(), 0.0))
            tasks.create_task(one(at))
    taken.seconds += time.perf_counter() - begin
    taken.cpu += time.process_time() - cpu


async def old_jobs(store: Store) -> int:
    async def work(tx: Transaction) -> int:
        connection = tx.session.connection
        found = await connection.execute(text("SELECT count(*) FROM threads WHERE updated_at < 1700000000"))
        return int(found.scalar_one())

    return await store.transact(work)


async def compare(name: str, url: str, options: argparse.Namespace) -> None:
    await migrate(url)
    engine = engine_for(url, statement_timeout=3600.0)
    await fill(engine, options.jobs)
    await vacuum(engine)
    await engine.dispose()
    store = await open_store(url)
    alone, beside, deleted = Taken(), Taken(), 0
    await commands(store, options, Taken())
    for _ in range(options.rounds):
        await commands(store, options, alone)
        before = await old_jobs(store)
        sweeping = asyncio.create_task(RetentionSweeper(store).run())
        await commands(store, options, beside)
        sweeping.cancel()
        deleted += before - await old_jobs(store)
    await store.close()
    if deleted == options.jobs:
        raise SystemExit("All jobs were deleted: more are needed.")
    rate = deleted / beside.seconds
    sys.stdout.write(
        f"{name}: {rate:.0f} jobs a second are deleted, a million in {1e6 / rate / 60:.0f} minutes, "
        f"with {(beside.cpu - alone.cpu) / deleted * 1000:.3f} ms of CPU each\n"
    )
    for part in (50, 90, 99):
        without, with_it = alone.percentile(part), beside.percentile(part)
        sys.stdout.write(f"  p{part} {without:6.2f} ms alone, {with_it:6.2f} beside it: x{with_it / without:.2f}\n")


async def on_postgres(server: PostgresServer, options: argparse.Namespace) -> None:
    async with server.empty_database() as url:
        await compare("PostgreSQL", url, options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--rate", type=float, default=20.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--databases", nargs="+", default=["sqlite", "postgresql"])
    options = parser.parse_args()
    logging.disable()
    if "sqlite" in options.databases:
        with tempfile.TemporaryDirectory() as directory:
            asyncio.run(compare("SQLite", f"sqlite:///{directory}/bench.sqlite3", options))
    if "postgresql" in options.databases:
        with postgres_server() as server:
            asyncio.run(on_postgres(server, options))


if __name__ == "__main__":
    main()
