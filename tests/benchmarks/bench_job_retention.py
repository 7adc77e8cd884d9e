"""What old jobs cost the job server: deleting many of them, beside what a poll costs with few and with many.

    python tests/benchmarks/bench_job_retention.py [--jobs 100000]

Printed are ratios, since machines differ: the cost of a poll and of a step of the queue with all jobs in the tables,
each as a multiple of the cost with a hundredth of them; and how many jobs are deleted in the time of one poll.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bot.jobserver.executor.job_folders import JobFolders
from bot.jobserver.store.database import Database
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.jobs import JobStore
from bot.jobserver.store.records import JobTemplate, Outcome, PromptRequest, as_text
from bot.jobserver.store.retention import BATCH_SIZE, JobRetention
from bot.jobserver.store.schema import STEPS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
TEMPLATE = JobTemplate("docs", "main", "builtin")


async def fill(database: Database, jobs: int) -> None:
    """Adds finished and archived jobs, with two instructions and an answer each, of increasing age."""
    async with database.transaction() as connection:
        await connection.execute("DELETE FROM answers")
        await connection.execute("DELETE FROM jobs")
        moments = [as_text(NOW - timedelta(minutes=number)) for number in range(jobs)]
        await connection.executemany(
            "INSERT INTO jobs (id, project_id, status, repository, ref, model, branch, pr_branch, created_at, "
            "finished_at, archived_at) VALUES (?, 'docs', 'archived', 'r', 'main', 'm', ?, ?, ?, ?, ?)",
            [(f"{n}", f"pagehand/{n}", f"pagehand/{n}", at, at, at) for n, at in enumerate(moments)],
        )
        await connection.executemany(
            "INSERT INTO instructions (job_id, project_id, prompt, state, created_at) VALUES (?, 'docs', ?, 'done', ?)",
            [(f"{n}", "words " * 50, at) for n, at in enumerate(moments) for _ in "12"],
        )
        await connection.executemany(
            "INSERT INTO answers (key, project_id, fingerprint, answer, created_at, job_id) "
            "VALUES (?, 'docs', '', '', ?, ?)",
            [(f"{n}", at, f"{n}") for n, at in enumerate(moments)],
        )


async def cost(step: Callable[[], Awaitable[object]], times: int = 200) -> float:
    """Seconds, the best of five rounds."""
    rounds = []
    for _ in range(5):
        begun = time.perf_counter()
        for _ in range(times):
            await step()
        rounds.append((time.perf_counter() - begun) / times)
    return min(rounds)


async def work(database: Database) -> tuple[float, float]:
    """The cost of a poll, and of an instruction's way through the tables."""
    jobs = JobStore(database, rate_limit=10**9, now=lambda: NOW)
    queue = InstructionQueue(database, now=lambda: NOW)

    async def instruction() -> None:
        job = await jobs.submit(PromptRequest("docs", "words"), TEMPLATE)
        taken = await queue.next_instruction(job.id)
        assert taken is not None
        await queue.finish(taken, Outcome())

    return await cost(lambda: jobs.get("docs", "7")), await cost(instruction, 50)


async def delete_all(database: Database, directory: Path) -> tuple[int, float]:
    """Returns how many jobs were deleted, and the seconds that one of them took."""
    retention = JobRetention(database, now=lambda: NOW + DAY)
    folders = JobFolders(directory)
    folders.prepare()
    deleted, begun = 0, time.perf_counter()
    while batch := await retention.jobs_to_delete(DAY):
        for job_id in batch:
            folders.delete(job_id)
        await retention.delete_jobs(batch)
        deleted += len(batch)
    return deleted, (time.perf_counter() - begun) / max(1, deleted)


async def main(jobs: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        async with Database(Path(scratch) / "jobs.sqlite3", STEPS) as database:
            await fill(database, jobs // 100)
            few_poll, few_step = await work(database)
            await fill(database, jobs)
            poll, step = await work(database)
            deleted, seconds = await delete_all(database, Path(scratch))
            names = await JobRetention(database, now=lambda: NOW).old_branches()
    sys.stdout.write(
        f"{jobs} jobs, as a multiple of {jobs // 100}: a poll costs {poll / few_poll:.2f}, "
        f"an instruction {step / few_step:.2f}\n"
        f"{deleted} jobs deleted, {seconds / poll:.2f} polls each, at most {BATCH_SIZE} in a transaction; "
        f"{'their branches are noted' if names else 'no branches'}\n"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100_000)
    asyncio.run(main(parser.parse_args().jobs))
