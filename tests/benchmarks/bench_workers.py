"""Three workers over PostgreSQL beside one process over SQLite: the rate of trivial jobs, how soon one starts, what an
idle worker costs, and how one server answers while many agents work.

    python tests/benchmarks/bench_workers.py [--jobs 1000] [--idle 30] [--agents 30]

The machine's cores are shared by all of them: on one machine, three workers show what sharing costs, not what it gains.
"""

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path

import asyncpg
import psutil  # type: ignore[import-untyped]  # it has no types of its own

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.servers.postgres import PostgresServer, postgres_server
from support.worlds import jobserver_world
from support.worlds.jobserver_process import JobServerProcess, job_server_process
from support.worlds.jobserver_world import JOB, make_bare

from bot.jobserver.store.claims import LEASE

LIBRARIES = (
    "aiohttp.web", "asyncpg", "click", "cryptography.hazmat.primitives.ciphers.aead", "h11", "jinja2", "jwt",
    "markdown_it", "mdit_py_plugins.front_matter", "prometheus_client", "pydantic_settings",
    "sqlalchemy.dialects.postgresql", "sqlalchemy.dialects.sqlite", "sqlalchemy.ext.asyncio",
)  # fmt: skip
STARTS = 40
"""Jobs, one after another, whose way to a worker is timed."""
GETS = 200
PAUSE_S = 0.02
WAIT_S = 3600.0
_TAKEN = "SELECT created_at, claimed_until FROM instructions WHERE job_id = ANY($1::text[])"


async def all_done(server: JobServerProcess, count: int) -> float:
    """Creates jobs and waits for their end; returns the seconds."""
    began = time.perf_counter()
    names = [f"{time.time_ns()} {number}" for number in range(count)]
    for job in [await server.create(f"Add a page called {name} with the text: A lamp.") for name in names]:
        ended = await server.ended(job)
        if ended["status"] != "completed" or not ended["prLink"]:
            raise SystemExit(f"a job failed: {ended}")
    return time.perf_counter() - began


async def milliseconds_to_start(api: JobServerProcess, url: str) -> list[float]:
    """From a job's record to its claim, by the database's clock."""
    jobs = []
    for number in range(STARTS):
        jobs.append(await api.create(f"Add a page called Start {number} with the text: A lamp."))
        await api.ended(jobs[-1])
    connection = await asyncpg.connect(url)
    rows = await connection.fetch(_TAKEN, jobs)
    await connection.close()
    moments = [[datetime.fromisoformat(row[name]) for name in ("created_at", "claimed_until")] for row in rows]
    return sorted((until - LEASE - created).total_seconds() * 1000 for created, until in moments)


def cpu_of(server: JobServerProcess) -> float:
    return float(sum(psutil.Process(server.pid).cpu_times()[:2]))


def cpu_of_libraries() -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", f"import {', '.join(LIBRARIES)}"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


async def workers(
    postgres: PostgresServer, directory: Path, shared: dict[str, str], options: argparse.Namespace
) -> None:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(postgres.empty_database())
        given = shared | {"DATABASE_URL": url, "PUBLIC_URL": "https://docs.example"}

        async def start(name: str, *arguments: str) -> JobServerProcess:
            return await stack.enter_async_context(job_server_process(directory / name, given, arguments=arguments))

        api = await start("api", "jobserver", "--without-worker")
        running = [await start(f"worker-{number}", "jobworker") for number in range(3)]
        started, libraries = cpu_of(running[-1]), statistics.median(cpu_of_libraries() for _ in range(3))
        say(f"a worker's start: {started:.2f} s of CPU, its libraries {libraries:.2f}: {started / libraries:.2f} x")
        await asyncio.sleep(2.0)
        before = cpu_of(running[0])
        await asyncio.sleep(options.idle)
        say(f"an idle worker: {(cpu_of(running[0]) - before) / options.idle:.2%} of a core")
        taken = await milliseconds_to_start(api, url)
        say(f"from record to claim: {statistics.median(taken):.0f} ms, p95 {p95(taken):.0f} ms")
        seconds = await all_done(api, options.jobs)
        say(f"{options.jobs} jobs over three workers on PostgreSQL: {options.jobs / seconds:.2f} a second")
    async with job_server_process(directory / "one", shared) as one:
        alone = await all_done(one, options.jobs)
    say(f"{options.jobs} jobs in one process on SQLite: {options.jobs / alone:.2f} a second")
    say(f"three workers / one process: {alone / seconds:.2f}")


async def slow_agents(directory: Path, shared: dict[str, str], count: int) -> None:
    command = {"EDITOR": "command", "COMMAND": "sleep 60", "SANDBOX": "none", "EGRESS": "open"}
    limits = {"MAX_CONCURRENT_JOBS": str(count)}
    async with job_server_process(directory / "slow", shared | command | limits) as server:
        idle = await time_gets(server, await server.create("Wait"))
        jobs = [await server.create(f"Wait {number}") for number in range(count - 1)]
        await asyncio.sleep(10.0)
        busy = await time_gets(server, jobs[-1])
        memory = psutil.Process(server.pid).memory_info().rss / 1e6
    say(f"{count} agents on one server: {memory:.0f} MB")
    say(f"GET beside them, p95: {p95(busy):.1f} ms; beside one {p95(idle):.1f} ms: {p95(busy) / p95(idle):.2f} x")


async def time_gets(server: JobServerProcess, job: str) -> list[float]:
    taken = []
    for _ in range(GETS):
        began = time.perf_counter()
        (await server.client.get(f"{JOB}/{job}")).raise_for_status()
        taken.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(PAUSE_S)
    return sorted(taken)


def p95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def say(words: str) -> None:
    sys.stdout.write(f"{words}  (load {os.getloadavg()[0]:.1f})\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--idle", type=float, default=30.0)
    parser.add_argument("--agents", type=int, default=30)
    options = parser.parse_args()
    jobserver_world.WAIT_S = WAIT_S
    with tempfile.TemporaryDirectory(prefix="pagehand-bench-") as folder, postgres_server() as postgres:
        repository = make_bare(Path(folder, "served.git"), {"docs/start.md": "# Start\n"})
        shared = {"REPOSITORY": f"file://{repository}", "RATE_LIMIT": "100000", "METRICS_TOKEN": "token-of-benchmark"}
        asyncio.run(slow_agents(Path(folder), shared, options.agents))
        asyncio.run(workers(postgres, Path(folder), shared, options))


if __name__ == "__main__":
    main()
