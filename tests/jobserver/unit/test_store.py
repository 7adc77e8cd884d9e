"""The job server's database: how its files are created and migrated, and how old rows are found and deleted."""

import asyncio
import contextlib
import json
import os
import sqlite3
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.fakes.job_ports import FakePullRequests

from bot.jobapi.models import JobDetails, PullRequestState, Status
from bot.jobserver.errors import GitError, JobServerError, RequestRejectedError
from bot.jobserver.pipeline.retention import remove_branches
from bot.jobserver.pull_requests.interface import OpenedPullRequest
from bot.jobserver.store.database import STEPS, Database
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.jobs import BATCH_SIZE, JobStore
from bot.jobserver.store.records import (
    EarlierInstruction,
    Instruction,
    JobTemplate,
    Outcome,
    ProgressUpdate,
    PromptRequest,
)

FIRST = "CREATE TABLE colours (name TEXT NOT NULL) STRICT; INSERT INTO colours VALUES ('red');"
SECOND = "ALTER TABLE colours ADD COLUMN hue INTEGER; UPDATE colours SET hue = 0 WHERE name = 'red';"
BROKEN = "UPDATE colours SET hue = 1; INSERT INTO nowhere VALUES (1);"


async def rows(path: Path, *steps: str) -> list[tuple[object, ...]]:
    async with Database(path, steps) as database, database.transaction() as connection:
        return [tuple(row) for row in await connection.execute_fetchall("SELECT * FROM colours ORDER BY name")]


async def add_blue(path: Path) -> None:
    async with Database(path, [FIRST]) as database, database.transaction() as connection:
        await connection.execute("INSERT INTO colours VALUES ('blue')")


async def test_a_new_file_gets_all_migrations_and_an_older_one_the_rest(tmp_path: Path) -> None:
    assert await rows(tmp_path / "new", FIRST, SECOND) == [("red", 0)]
    await add_blue(tmp_path / "old")
    for _ in range(2):
        assert await rows(tmp_path / "old", FIRST, SECOND) == [("blue", None), ("red", 0)]


async def test_a_failed_migration_leaves_the_file_unchanged(tmp_path: Path) -> None:
    await add_blue(tmp_path / "old")
    with pytest.raises(sqlite3.OperationalError):
        await rows(tmp_path / "old", FIRST, SECOND, BROKEN)
    assert await rows(tmp_path / "old", FIRST) == [("blue",), ("red",)]


async def test_a_newer_file_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite3"
    await asyncio.to_thread(set_version, path, 99)
    with pytest.raises(JobServerError, match="newer version"):
        await rows(path, FIRST)
    assert await asyncio.to_thread(version, path) == 99


def set_version(path: Path, number: int) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {number}")


def version(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        number: int = connection.execute("PRAGMA user_version").fetchone()[0]
        return number


async def test_a_file_of_the_first_version_keeps_its_jobs(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sqlite3"
    await asyncio.to_thread(make_first_version, path)
    async with Database(path, STEPS) as database:
        jobs, queue = JobStore(database, rate_limit=100, now=now), InstructionQueue(database, now=now)
        done, failed = await jobs.get("docs", "done"), await jobs.get("docs", "failed")
        assert (done.status, done.pr_link, done.details) == (Status.COMPLETED, "http://x/pulls/1", None)
        assert (failed.status, failed.details) == (Status.FAILED, JobDetails(reason="git is away"))
        again = await jobs.submit(PromptRequest("docs", "one", None, "k-1"), JobTemplate("r", "main", "m"))
        assert again == done, "answers that were kept are still given"
        assert await queue.requeue_interrupted() == ["at-work"]
        taken = await queue.next_instruction("at-work")
        assert taken == Instruction(3, "at-work", "pagehand/at-work", "three", "three")
        await jobs.submit(PromptRequest("docs", "four", "done"), JobTemplate("r", "main", "m"))
        four = await queue.next_instruction("done")
        assert four is not None
        assert (four.number, four.conversation) == (4, (EarlierInstruction("one", "", "one"),)), (
            "numbers are never used again"
        )
        cancelled = await jobs.cancel("docs", "at-work")
        assert cancelled.running == 3


def make_first_version(path: Path) -> None:
    """Creates what the first version wrote, with rows of every kind."""
    answer = {
        "id": "done", "status": "completed", "source": {"repository": "r", "ref": "main"}, "model": "m",
        "pr_link": "http://x/pulls/1", "created_at": "2026-01-01T00:00:00.000Z", "archived_at": None,
    }  # fmt: skip
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(STEPS[0])
        for job_id, status, link, failure in (
            ("done", "completed", "http://x/pulls/1", None),
            ("failed", "failed", None, "git is away"),
            ("at-work", "active", None, None),
        ):
            connection.execute(
                "INSERT INTO jobs VALUES (?, 'docs', ?, 'r', 'main', 'm', ?, ?, ?, '2026-01-01T00:00:00Z', ?, NULL)",
                (job_id, status, f"pagehand/{job_id}", link, failure, None if status == "active" else "2026-01-02"),
            )
        for job_id, prompt, state in (
            ("done", "one", "done"),
            ("failed", "two", "failed"),
            ("at-work", "three", "running"),
        ):
            connection.execute(
                "INSERT INTO instructions (job_id, project_id, prompt, state, created_at) VALUES (?, 'docs', ?, ?, ?)",
                (job_id, prompt, state, "2026-01-01T00:00:00.000000Z"),
            )
        connection.execute(
            "INSERT INTO answers VALUES ('k-1', 'docs', ?, ?, '2026-01-01T00:00:00.000000Z')",
            (PromptRequest("docs", "one").fingerprint, json.dumps(answer)),
        )
        connection.execute("PRAGMA user_version = 1")


def now() -> datetime:
    return datetime.now(UTC)


async def test_the_files_are_private_to_their_owner(tmp_path: Path) -> None:
    """Even if existing ones are readable by others."""
    before = os.umask(0)
    try:
        await rows(tmp_path / "new", FIRST)
        (tmp_path / "new").chmod(0o644)
        async with Database(tmp_path / "new", [FIRST]) as database, database.transaction() as connection:
            await connection.execute("INSERT INTO colours VALUES ('blue')")
            modes = {name: os.stat(tmp_path / name).st_mode & 0o777 for name in os.listdir(tmp_path)}  # noqa: PTH116, PTH208 - pathlib's would block as much
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("new", "new-wal", "new-shm"), 0o600)


TEMPLATE = JobTemplate("docs", "main", "builtin")
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


class Jobs:
    """A real store whose clock a test sets."""

    def __init__(self, database: Database) -> None:
        self.time = START
        self.store = JobStore(database, rate_limit=100_000, now=lambda: self.time)
        self.queue = InstructionQueue(database, now=lambda: self.time)
        self.retention = self.store

    async def finished(self, key: str | None = None, link: str | None = "http://x/pulls/1") -> str:
        """Adds a job with an instruction on each of two branches."""
        job = await self.store.submit(PromptRequest("docs", "one", None, key), TEMPLATE)
        taken = await self.taken(job.id)
        await self.queue.record_progress(job.id, ProgressUpdate(activity="reading", session="s"))
        await self.queue.finish(taken, Outcome(pr_link="http://x/pulls/0"))
        await self.store.submit(PromptRequest("docs", "two", job.id), TEMPLATE)
        taken = await self.queue.use_next_branch(await self.taken(job.id))
        await self.queue.record_pushed(taken, "c0ffee")
        await self.queue.finish(taken, Outcome(commit="c0ffee", pr_link=link))
        return job.id

    async def taken(self, job_id: str) -> Instruction:
        taken = await self.queue.next_instruction(job_id)
        assert taken is not None
        return taken

    async def delete_old(self) -> None:
        await self.retention.archive(DAY)
        self.time += 2 * DAY
        await self.retention.delete_jobs(await self.retention.jobs_to_delete(DAY))


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with Database(tmp_path / "jobs.sqlite3", STEPS) as database:
        yield database


async def test_a_deleted_job_loses_its_rows_but_keeps_its_proposed_branches(
    database: Database,
) -> None:
    jobs = Jobs(database)
    gone, unproposed = await jobs.finished("k-1"), await jobs.finished(link=None)
    jobs.time += 2 * DAY
    kept = await jobs.finished("k-2")
    await jobs.delete_old()
    for job_id in (gone, unproposed):
        with pytest.raises(RequestRejectedError):
            await jobs.store.get("docs", job_id)
    async with database.transaction() as connection:
        rows = await connection.execute_fetchall("SELECT job_id FROM instructions UNION ALL SELECT job_id FROM answers")
    assert [row["job_id"] for row in rows] == [kept, kept, kept]
    expected = {f"pagehand/{gone}", f"pagehand/{gone}-2", f"pagehand/{unproposed}"}
    assert set(await jobs.retention.old_branches()) == expected, "a branch that nobody could review stays"
    anew = await jobs.store.submit(PromptRequest("docs", "other", None, "k-1"), TEMPLATE)
    assert anew.id != gone, "a key of a deleted job is free again"


async def test_a_transaction_deletes_a_bounded_number_of_rows(database: Database) -> None:
    jobs = Jobs(database)
    async with database.transaction() as connection:
        await connection.executemany(
            "INSERT INTO jobs (id, project_id, status, repository, ref, model, branch, created_at, finished_at) "
            "VALUES (?, 'docs', 'completed', 'r', 'main', 'm', ?, ?, ?)",
            [(f"{n}", f"b{n}", START.isoformat(), START.isoformat()) for n in range(BATCH_SIZE + 1)],
        )
    jobs.time += 2 * DAY
    assert [await jobs.retention.archive(DAY) for _ in range(3)] == [BATCH_SIZE, 1, 0]
    jobs.time += 2 * DAY
    assert len(await jobs.retention.jobs_to_delete(DAY)) == BATCH_SIZE


async def test_no_query_scans_a_whole_table(database: Database) -> None:
    jobs, statements = Jobs(database), list[str]()
    async with database.transaction() as connection:
        await connection.set_trace_callback(statements.append)
    job_id = await jobs.finished("k-1")
    await jobs.store.get("docs", job_id)
    await jobs.store.submit(PromptRequest("docs", "three", job_id), TEMPLATE)
    taken = await jobs.taken(job_id)
    await jobs.store.cancel("docs", job_id)
    await jobs.queue.is_stopped(taken)
    await jobs.queue.release(taken)
    await jobs.queue.requeue_interrupted()
    await jobs.queue.finish(await jobs.taken(job_id), Outcome())
    await jobs.retention.delete_answers()
    await jobs.delete_old()
    await jobs.retention.forget_branch("b")
    async with database.transaction() as connection:
        seen = tuple(statements)
        for statement in seen:
            if statement.startswith(("SELECT", "UPDATE", "DELETE")):
                plan = await connection.execute_fetchall(f"EXPLAIN QUERY PLAN {statement}")
                scans = [row["detail"] for row in plan if row["detail"].startswith("SCAN")]
                assert all("USING" in scan for scan in scans), f"{statement}: {scans}"
    assert len(seen) > 60


class Branches:
    """A repository in which one branch cannot be deleted."""

    def __init__(self, stuck: str = "") -> None:
        self.stuck = stuck
        self.deleted: list[str] = []

    async def delete_branch(self, branch: str) -> None:
        if branch == self.stuck:
            raise GitError("protected")
        self.deleted.append(branch)


async def test_branches_of_ended_pull_requests_are_deleted_despite_a_failing_one(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    jobs, branches, pull_requests = Jobs(database), Branches(), FakePullRequests()
    ids = sorted([await jobs.finished() for _ in range(3)])
    jobs.time += 2 * DAY
    await jobs.delete_old()
    branches.stuck = f"pagehand/{ids[0]}"
    pull_requests.kept.append(OpenedPullRequest(1, "http://x/1", f"pagehand/{ids[1]}", PullRequestState.OPEN))
    pull_requests.kept.append(OpenedPullRequest(2, "http://x/2", f"pagehand/{ids[2]}", PullRequestState.MERGED))
    await remove_branches(jobs.retention, pull_requests, branches.delete_branch)
    assert set(branches.deleted) == {f"pagehand/{ids[2]}", *(f"pagehand/{job_id}-2" for job_id in ids)}
    assert await jobs.retention.old_branches() == [branches.stuck]
    assert "1 old branches could not be deleted" in caplog.text
    jobs.time += 8 * DAY
    await remove_branches(jobs.retention, pull_requests, branches.delete_branch)
    assert await jobs.retention.old_branches() == [], "a week of tries is enough: what grows has an end"
