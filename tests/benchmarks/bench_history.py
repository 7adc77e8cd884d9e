"""What a history of finished jobs costs: the same work with it and without, in turns, on SQLite and on PostgreSQL.

    python tests/benchmarks/bench_history.py [--finished 1000000] [--rounds 60] [--databases sqlite postgresql]

Printed are the medians of the time that each piece of work takes without and with that many finished jobs, and their
ratios: a command that is acknowledged, a reply that is, both prepared, a batch of polls (claimed and saved), what a
scrape of the metrics reads, a stop and a start.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.servers.postgres import PostgresServer, postgres_server
from support.worlds.finished_jobs import fill, vacuum
from support.worlds.store_world import JOB, LEASE, a_post, a_thread, add, changed, claim_polls, save_polls, unchanged

from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Person, Reply, RequestState, WayIn
from bot.domain.threads.thread import ThreadState
from bot.service import Service
from bot.store.database.engine import engine_for
from bot.store.schema.migration import migrate
from bot.store.store import open_store
from bot.store.transaction import Store, Transaction

OPEN = 200
"""Watched jobs in each database."""
BATCH = 50
ANA = Person("UANA", "T1")


@dataclass
class Database:
    """One of the compared databases, and how long each piece of work took in it, in seconds."""

    url: str
    store: Store
    numbers: Iterable[int] = field(default_factory=count)
    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @property
    def service(self) -> Service:
        return Service(self.store, on_commit=lambda: None)

    async def measure(self) -> None:
        for work in (self.start, self.steer, self.prepare, self.poll, self.scrape, self.stop, self.open):
            began = time.perf_counter()
            await work()
            self.times[work.__name__].append(time.perf_counter() - began)

    def _number(self) -> int:
        return next(iter(self.numbers))

    async def start(self) -> None:
        await self.service.start(NewJob(ANA, "CBENCH", "Fix the spelling", os.urandom(8).hex(), WayIn.COMMAND))

    async def steer(self) -> None:
        await self.service.receive(Reply(ANA, "C1", "open1.1", f"{self._number()}.5", "And the titles"))

    async def prepare(self) -> None:
        claimed = await self.store.transact(lambda tx: tx.requests.claim_received("bench", lease=LEASE, limit=BATCH))
        if not claimed:
            raise SystemExit("Nothing was to be prepared.")

        async def record(tx: Transaction) -> None:
            for item in claimed:
                await tx.requests.prepared(replace(item.request, state=RequestState.WAITING), due_in=LEASE)

        await self.store.transact(record)

    async def poll(self) -> None:
        items = await claim_polls(self.store, "bench", limit=BATCH)
        polls = [unchanged(item, next_poll_in=0.0) for item in items]
        polls[0] = changed(items[0], a_post(f"{self._number()}"), not_found_count=self._number(), next_poll_in=0.0)
        if await save_polls(self.store, *polls, owner="bench") != BATCH:
            raise SystemExit("Polls were not saved.")

    async def scrape(self) -> None:
        await self.store.transact(lambda tx: tx.backlogs.read(["chat.update"]))

    async def stop(self) -> None:
        await self.store.transact(lambda tx: tx.claims.release("bench"))

    async def open(self) -> None:
        await (await open_store(self.url)).close()


async def made(url: str, finished: int) -> Database:
    """Creates a database with watched jobs and these finished ones."""
    await migrate(url)
    if finished:
        engine = engine_for(url, statement_timeout=3600.0)
        began = time.perf_counter()
        await fill(engine, finished)
        await vacuum(engine)
        await engine.dispose()
        sys.stdout.write(f"{finished} finished jobs made in {time.perf_counter() - began:.0f} s\n")
    database = Database(url, await open_store(url))
    for number in range(OPEN):
        name = f"open{number}"
        await add(database.store, replace(a_thread(name), ts=f"{name}.1"))
        await database.store.transact(
            lambda tx, name=name: tx.threads.save_state(name, ThreadState(job=JOB), poll_in=0.0)  # type: ignore[misc]
        )
    return database


async def compare(name: str, urls: tuple[str, str], options: argparse.Namespace) -> None:
    without, with_history = await made(urls[0], 0), await made(urls[1], options.finished)
    for turn in range(options.rounds):
        # Alternating, each first every other time, so that other load affects both alike.
        for database in (without, with_history) if turn % 2 else (with_history, without):
            await database.measure()
    sys.stdout.write(f"{name}, ms without and with {options.finished} finished jobs, medians of {options.rounds}:\n")
    for work, times in without.times.items():
        before, after = (statistics.median(each[1:] or each) * 1000 for each in (times, with_history.times[work]))
        sys.stdout.write(f"{work:>8}: {before:8.2f} {after:8.2f}   x{after / before:.2f}\n")
    for database in (without, with_history):
        await database.store.close()


async def on_postgres(server: PostgresServer, options: argparse.Namespace) -> None:
    async with server.empty_database() as first, server.empty_database() as second:
        await compare("PostgreSQL", (first, second), options)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--finished", type=int, default=1_000_000)
    arguments.add_argument("--rounds", type=int, default=60)
    arguments.add_argument("--databases", nargs="+", default=["sqlite", "postgresql"])
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        urls = (f"sqlite:///{directory}/without.db", f"sqlite:///{directory}/with.db")
        if "sqlite" in options.databases:
            asyncio.run(compare("SQLite", urls, options))
    if "postgresql" in options.databases:
        with postgres_server(fsync="off") as server:
            asyncio.run(on_postgres(server, options))


if __name__ == "__main__":
    main()
