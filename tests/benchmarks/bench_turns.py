"""How long a claim of requests takes while one person has few or very many waiting, on SQLite and on PostgreSQL.

    python tests/benchmarks/bench_turns.py [--rows 10 100000] [--threads 1] [--claims 30]

Twenty others have one request each. Printed is the median time of a claim of eight, with the ratio to the first of
`rows`.
"""

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from sqlalchemy import insert, text
from support.servers.postgres import postgres_server
from support.worlds.store_world import JOB, a_follow_up, a_thread

from bot.domain.requests.request import RequestState
from bot.domain.threads.thread import ThreadState
from bot.store.database.engine import engine_for
from bot.store.request_queue import ClaimedRequest
from bot.store.schema.migration import migrate
from bot.store.schema.rows import request_values, thread_values
from bot.store.schema.tables import requests, threads
from bot.store.store import open_store
from bot.store.transaction import Transaction

OTHERS, AT_A_TIME, LIMIT = 20, 5_000, 8
STATES = (RequestState.RECEIVED, RequestState.WAITING)


def waiting(rows: int, of_threads: int, state: RequestState) -> Iterator[dict[str, Any]]:
    """Adds requests of one person, and one of each other, all due."""
    due = time.time() - 60.0
    for number in range(rows):
        reply = a_follow_up(f"1700000000.{number:06}", f"t{number % of_threads}", person_id="UMANY", state=state)
        yield request_values(reply) | {"due_at": due + number / rows}
    for number in range(OTHERS):
        reply = a_follow_up("1800000000.000000", f"o{number}", person_id=f"U{number}", state=state)
        yield request_values(reply) | {"due_at": due + 2.0}


async def fill(url: str, rows: int, of_threads: int, state: RequestState) -> None:
    """Fills an empty database."""
    await migrate(url)
    names = [*(f"t{number}" for number in range(of_threads)), *(f"o{number}" for number in range(OTHERS))]
    made = [thread_values(a_thread(name, ts=f"{name}.1", state=ThreadState(job=JOB))) for name in names]
    replies = list(waiting(rows, of_threads, state))
    engine = engine_for(url)
    async with engine.begin() as connection:
        await connection.execute(insert(threads), [values | {"updated_at": 1.0} for values in made])
        for first in range(0, len(replies), AT_A_TIME):
            await connection.execute(insert(requests), replies[first : first + AT_A_TIME])
    async with engine.connect() as connection:
        await (await connection.execution_options(isolation_level="AUTOCOMMIT")).execute(text("ANALYZE"))
    await engine.dispose()


async def milliseconds_a_claim(url: str, options: argparse.Namespace, rows: int, state: RequestState) -> float:
    """Returns the median over claims; each claim is released again."""
    await fill(url, rows, options.threads, state)
    store, taken = await open_store(url), list[float]()

    async def work(tx: Transaction) -> None:
        claim = tx.requests.claim_received if state is RequestState.RECEIVED else tx.requests.claim
        turn, begin = random.random(), time.perf_counter()  # noqa: S311 - guards nothing
        claimed: Sequence[ClaimedRequest] = await claim("bench", lease=30.0, limit=LIMIT, turn=turn)
        taken.append((time.perf_counter() - begin) * 1000)
        for item in claimed:
            await tx.requests.settle(item.request.id, state)

    for _ in range(options.claims):
        await store.transact(work)
    await store.close()
    return statistics.median(taken)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rows", type=int, nargs="+", default=[10, 100_000])
    arguments.add_argument("--threads", type=int, default=1, help="of the person with many")
    arguments.add_argument("--claims", type=int, default=30)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as directory, postgres_server() as server:
        for state in STATES:
            compare(state, options, Path(directory), server)


def compare(state: RequestState, options: argparse.Namespace, directory: Path, server: Any) -> None:
    """Prints a line for each number of rows."""

    async def on_postgres(rows: int) -> float:
        async with server.empty_database() as url:
            return await milliseconds_a_claim(url, options, rows, state)

    first: tuple[float, ...] = ()
    for rows in options.rows:
        url = f"sqlite:///{directory}/{state}-{rows}.db"
        found = asyncio.run(milliseconds_a_claim(url, options, rows, state)), asyncio.run(on_postgres(rows))
        first = first or found
        words = (
            f"{name} {ms:.1f} ms x{ms / one:.1f}"
            for name, ms, one in zip(("SQLite", "PostgreSQL"), found, first, strict=True)
        )
        sys.stdout.write(f"{state}, {rows} of one person in {options.threads} threads: {', '.join(words)}\n")


if __name__ == "__main__":
    main()
