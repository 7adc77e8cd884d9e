"""Three workers over PostgreSQL beside one process over SQLite: the rate of trivial jobs, how soon one starts, what an
idle worker costs, and how one server answers while many agents work.

    python tests/benchmarks/bench_workers.py [--jobs 1000] [--agents 30] [--before /OTHER/VERSION/.venv/bin/pagehand]

The machine's cores are shared by all of them: on one machine, three workers show what sharing costs, not what it gains.
With `--before`, the one process takes turns with that of another version. The servers' logs go to standard error.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
import psutil  # type: ignore[import-untyped]  # it has no types of its own

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.servers.postgres import PostgresServer, postgres_server
from support.worlds import jobserver_world
from support.worlds.jobserver_process import PAGEHAND, JobServerProcess, job_server_process
from support.worlds.jobserver_world import JOB, make_bare

LIBRARIES = (
    "aiohttp.web", "asyncpg", "click", "cryptography.hazmat.primitives.ciphers.aead", "h11", "markupsafe",
    "prometheus_client", "pydantic_settings", "sqlalchemy.dialects.postgresql.asyncpg", "sqlalchemy.dialects.sqlite",
    "sqlalchemy.ext.asyncio", "sqlite3", "tarfile", "tomllib",
)  # fmt: skip
"""What a worker has imported when it is ready."""
ALONE, ROUNDS = 40, 3
"""Jobs of one process in a round."""
IDLE_S = 20.0
STARTS = 25
"""Jobs, one after another, whose way to a worker is timed."""
GETS = 200
PAUSE_S = 0.02
WAIT_S = 3600.0
_NOTE_CLAIMS = """
CREATE TABLE claims (number integer, claimed_at timestamptz);
CREATE FUNCTION note_claim() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO claims VALUES (NEW.number, clock_timestamp()); RETURN NULL; END
$$;
CREATE TRIGGER claimed AFTER UPDATE ON instructions FOR EACH ROW
    WHEN (OLD.state = 'queued' AND NEW.state = 'running') EXECUTE FUNCTION note_claim();
"""
_CLAIMED = """
SELECT 1000 * extract(epoch FROM claimed_at - created_at::timestamptz)::float AS milliseconds
FROM instructions JOIN claims USING (number)
"""


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
    connection = await asyncpg.connect(url)
    await connection.execute(_NOTE_CLAIMS)
    for number in range(STARTS):
        await api.ended(await api.create(f"Add a page called Start {number} with the text: A lamp."))
    rows = await connection.fetch(_CLAIMED)
    await connection.execute("DROP TRIGGER claimed ON instructions")
    await connection.close()
    return [row["milliseconds"] for row in rows]


def cpu_of(pid: int, *, with_children: bool = False) -> float:
    return float(sum(psutil.Process(pid).cpu_times()[: 4 if with_children else 2]))


def megabytes_of(pid: int) -> float:
    return float(psutil.Process(pid).memory_info().rss / 1e6)


async def with_libraries() -> tuple[float, float]:
    """The seconds of CPU and the megabytes of a process that has imported them, and does nothing else."""
    code = f"import sys, {', '.join(LIBRARIES)}; print(flush=True); sys.stdin.read()"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdin=PIPE, stdout=PIPE)
    assert process.stdout is not None
    await process.stdout.readline()
    figures = cpu_of(process.pid), megabytes_of(process.pid)
    await process.communicate(b"")
    return figures


async def three_workers(
    postgres: PostgresServer, directory: Path, shared: dict[str, str], options: argparse.Namespace
) -> None:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(postgres.empty_database())
        given = shared | {"DATABASE_URL": url, "PUBLIC_URL": "https://docs.example"}

        async def start(name: str, *arguments: str) -> JobServerProcess:
            return await stack.enter_async_context(job_server_process(directory / name, given, arguments=arguments))

        api = await start("api", "jobserver", "--without-worker")
        workers, started, libraries = list[int](), list[float](), list[tuple[float, float]]()
        for number in range(3):
            workers.append((await start(f"worker-{number}", "jobworker")).pid)
            started.append(cpu_of(workers[-1]))
            libraries.append(await with_libraries())
        cpu, of_libraries = statistics.median(started), statistics.median(seconds for seconds, _ in libraries)
        megabytes = statistics.median(size for _, size in libraries)
        say(f"a worker's start: {cpu:.2f} s of CPU, its libraries {of_libraries:.2f}: {cpu / of_libraries:.2f} x")
        await asyncio.sleep(2.0)
        idle, before = workers[0], cpu_of(workers[0])
        await asyncio.sleep(IDLE_S)
        memory = megabytes_of(idle)
        say(f"an idle worker: {(cpu_of(idle) - before) / IDLE_S:.2%} of a core")
        say(f"its memory: {memory:.0f} MB, its libraries {megabytes:.0f}: {memory / megabytes:.2f} x")
        taken = await milliseconds_to_start(api, url)
        say(f"from record to claim: {statistics.median(taken):.0f} ms, p95 {p95(taken):.0f} ms")
        seconds = await all_done(api, options.jobs)
        say(f"{options.jobs} jobs over three workers on PostgreSQL: {options.jobs / seconds:.2f} a second")


async def one_process(directory: Path, shared: dict[str, str], before: str) -> None:
    async with AsyncExitStack() as stack:
        programs = {"this version": (sys.executable, *PAGEHAND)} | ({"the other": (before,)} if before else {})
        servers = {
            name: await stack.enter_async_context(job_server_process(directory / name, shared, program))
            for name, program in programs.items()
        }
        started = {name: cpu_of(server.pid, with_children=True) for name, server in servers.items()}
        taken = {name: list[float]() for name in servers}
        for _ in range(ROUNDS):
            for name, server in servers.items():
                taken[name].append(await all_done(server, ALONE))
        for name, server in servers.items():
            rate = ALONE / statistics.median(taken[name])
            cpu = (cpu_of(server.pid, with_children=True) - started[name]) / ALONE / ROUNDS
            say(f"one process on SQLite, {name}: {rate:.2f} jobs a second, {cpu * 1000:.0f} ms of CPU each")


async def slow_agents(directory: Path, shared: dict[str, str], count: int) -> None:
    command = {"EDITOR": "command", "COMMAND": "sleep 60", "SANDBOX": "none", "EGRESS": "open"}
    limits = {"MAX_CONCURRENT_JOBS": str(count)}
    async with job_server_process(directory / "slow", shared | command | limits) as server:
        idle = await time_gets(server, await server.create("Wait"))
        jobs = [await server.create(f"Wait {number}") for number in range(count - 1)]
        await asyncio.sleep(10.0)
        busy = await time_gets(server, jobs[-1])
        memory = megabytes_of(server.pid)
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
    parser.add_argument("--agents", type=int, default=30)
    parser.add_argument("--before", default="")
    options = parser.parse_args()
    jobserver_world.WAIT_S = WAIT_S
    with tempfile.TemporaryDirectory(prefix="pagehand-bench-") as folder, postgres_server() as postgres:
        repository = make_bare(Path(folder, "served.git"), {"docs/start.md": "# Start\n"})
        shared = {"REPOSITORY": f"file://{repository}", "RATE_LIMIT": "100000", "METRICS_TOKEN": "token-of-benchmark"}
        asyncio.run(slow_agents(Path(folder), shared, options.agents))
        asyncio.run(one_process(Path(folder), shared, options.before))
        asyncio.run(three_workers(postgres, Path(folder), shared, options))


if __name__ == "__main__":
    main()
