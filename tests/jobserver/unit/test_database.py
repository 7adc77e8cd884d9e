"""How the job server's database files are created, and older ones migrated."""

import asyncio
import contextlib
import json
import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.jobapi.models import JobDetails, Status
from bot.jobserver.errors import JobServerError
from bot.jobserver.store.database import Database
from bot.jobserver.store.instruction_queue import InstructionQueue
from bot.jobserver.store.jobs import JobStore
from bot.jobserver.store.records import EarlierInstruction, Instruction, JobTemplate, PromptRequest
from bot.jobserver.store.schema import STEPS

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
