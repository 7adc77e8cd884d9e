"""CPU of a poll in the store, on SQLite and on PostgreSQL, side by side in one run.

    python tests/benchmarks/bench_store.py [--threads 20000] [--batch 100] [--batches 30] [--explain]

Polls are claimed and saved in batches, as the watch loop does it; one in fifty changes something. Counted is the CPU
time of this process and, for PostgreSQL, that of its server, too. `--explain` shows how each database answers the
statements that look for due work.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # it has no types of its own

sys.path.insert(0, str(Path(__file__).parents[1]))

from sqlalchemy import insert, text
from support.servers.postgres import PostgresServer, postgres_server
from support.worlds.store_world import (
    JOB,
    a_follow_up,
    a_post,
    a_start,
    a_thread,
    changed,
    claim_polls,
    save_polls,
    unchanged,
)

from bot.domain.requests.request import RequestState
from bot.domain.threads.thread import Announcements, Thread, ThreadState
from bot.store import notice_queue, turns
from bot.store import polls as poll_queue
from bot.store.database.engine import engine_for
from bot.store.polls import ClaimedPoll, PollResult
from bot.store.schema.migration import migrate
from bot.store.schema.rows import notice_values, request_values, thread_values
from bot.store.schema.tables import NoticeState, notices, polls, requests, threads
from bot.store.store import open_store
from bot.store.transaction import Transaction

CHANGED_EVERY = 50


@dataclass(frozen=True)
class Cost:
    """Milliseconds of CPU per poll: in this process, and in the database's."""

    client: float
    server: float

    @property
    def both(self) -> float:
        return self.client + self.server


async def fill(url: str, count: int) -> None:
    """Adds threads with watched and due jobs, all with a history, a tenth with an open request and notice."""
    now = time.time() - 60.0
    everything: list[Thread] = [
        a_thread(
            f"t{n}",
            ts=f"{n}.1",
            state=ThreadState(job=JOB, announcements=Announcements(links=("https://example.com/1",))),
            prompt="Do it. " * 20,
        )
        for n in range(count)
    ]
    due = [{"thread_id": thread.id, "due_at": now + n / count} for n, thread in enumerate(everything)]
    started = [request_values(a_start(thread.id, state=RequestState.ACCEPTED)) for thread in everything]
    replies = [
        request_values(a_follow_up("1", thread.id)) | {"due_at": now + n / count}
        for n, thread in enumerate(everything[::10])
    ]
    done = {"state": NoticeState.DONE, "due_at": None}
    said = [notice_values(thread.id, a_post(key), now) | done for thread in everything for key in ("a", "b", "c")]
    to_say = [notice_values(thread.id, a_post("d"), now + n / count) for n, thread in enumerate(everything[::10])]
    engine = engine_for(url)
    async with engine.begin() as connection:
        rows = [thread_values(thread) | {"updated_at": now} for thread in everything]
        for table, values in (
            (threads, rows),
            (polls, due),
            (requests, started),
            (requests, replies),
            (notices, said),
            (notices, to_say),
        ):
            await connection.execute(insert(table), values)
    async with engine.connect() as connection:
        await (await connection.execution_options(isolation_level="AUTOCOMMIT")).execute(text("ANALYZE"))
    await engine.dispose()


def polled(number: int, item: ClaimedPoll) -> PollResult:
    if number % CHANGED_EVERY == 0:
        return changed(item, a_post(f"{number}"), not_found_count=1, next_poll_in=30.0)
    return unchanged(item, next_poll_in=30.0)


async def cpu_a_poll(url: str, options: argparse.Namespace, server: PostgresServer | None) -> Cost:
    """Claims and saves batches; the time before the end of the first one is not counted."""
    store = await open_store(url)
    polls = 0
    client, elsewhere = time.process_time(), cpu_of(server)
    for batch in range(options.batches + 1):
        if batch == 1:
            client, elsewhere, polls = time.process_time(), cpu_of(server), 0
        items = await claim_polls(store, "bench", limit=options.batch)
        saved = await save_polls(store, *(polled(n, item) for n, item in enumerate(items)), owner="bench")
        if saved != options.batch:
            raise SystemExit(f"{saved} polls were saved instead of {options.batch}: are there too few threads?")
        polls += saved
    cost = Cost((time.process_time() - client) / polls * 1000, (cpu_of(server) - elsewhere) / polls * 1000)
    await store.close()
    return cost


def cpu_of(server: PostgresServer | None) -> float:
    """Seconds of CPU that the server's processes have used."""
    if server is None:
        return 0.0
    postmaster = psutil.Process(server.process_id)
    return sum(sum(process.cpu_times()[:2]) for process in (postmaster, *postmaster.children(recursive=True)))


async def plans(url: str) -> str:
    """Returns how the database looks for due work."""
    engine = engine_for(url)
    explain = "EXPLAIN QUERY PLAN" if engine.dialect.name == "sqlite" else "EXPLAIN (ANALYZE, COSTS OFF)"
    values: dict[str, Any] = {
        "now": time.time(),
        "limit": 100,
        "held_channels": ["C2"],
        "ahead": ["docs"],
        "ahead_in_threads": ["guides"],
        "turn": 7,
        "begin": "00000007",
        "most": 100,
    }
    lines: list[str] = []
    store = await open_store(url)

    async def work(tx: Transaction) -> None:
        for statement in (poll_queue._CANDIDATES, turns.WAITING, *notice_queue._CANDIDATES.values()):
            sql = statement.params(values).compile(dialect=engine.dialect, compile_kwargs={"literal_binds": True})
            rows = await tx.session.connection.exec_driver_sql(f"{explain} {sql}")
            lines.extend(str(row[-1]) for row in rows)
            lines.append("")

    await store.transact(work)
    await store.close()
    await engine.dispose()
    return "\n".join(lines)


async def measure(url: str, options: argparse.Namespace, server: PostgresServer | None) -> Cost:
    await migrate(url)
    await fill(url, options.threads)
    if options.explain:
        sys.stdout.write(await plans(url))
    return await cpu_a_poll(url, options, server)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--threads", type=int, default=20_000)
    arguments.add_argument("--batch", type=int, default=100)
    arguments.add_argument("--batches", type=int, default=30)
    arguments.add_argument("--explain", action="store_true")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as directory, postgres_server() as server:
        costs = {
            "SQLite": asyncio.run(measure(f"sqlite:///{directory}/bench.db", options, None)),
            "PostgreSQL": asyncio.run(measure(server.url("postgres"), options, server)),
        }
    sys.stdout.write(f"CPU ms a poll, {options.threads} threads, batches of {options.batch}:\n")
    for name, cost in costs.items():
        ratio = cost.both / costs["SQLite"].both
        sys.stdout.write(
            f"{name:>12}: {cost.both:.3f} = {cost.client:.3f} here + {cost.server:.3f} server   x{ratio:.2f}\n"
        )


if __name__ == "__main__":
    main()
