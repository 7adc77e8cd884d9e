"""How the job server's database files come to be, and how older ones are brought up to date."""

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest

from bot.jobserver.errors import JobServerError
from bot.jobserver.store.database import Database

FIRST = "CREATE TABLE colours (name TEXT NOT NULL) STRICT; INSERT INTO colours VALUES ('red');"
SECOND = "ALTER TABLE colours ADD COLUMN hue INTEGER; UPDATE colours SET hue = 0 WHERE name = 'red';"
BROKEN = "UPDATE colours SET hue = 1; INSERT INTO nowhere VALUES (1);"


async def rows(path: Path, *steps: str) -> list[tuple[object, ...]]:
    async with Database(path, steps) as database, database.transaction() as connection:
        return [tuple(row) for row in await connection.execute_fetchall("SELECT * FROM colours ORDER BY name")]


async def add_blue(path: Path) -> None:
    async with Database(path, [FIRST]) as database, database.transaction() as connection:
        await connection.execute("INSERT INTO colours VALUES ('blue')")


async def test_a_new_file_takes_all_steps_and_an_older_one_those_it_has_not_seen(tmp_path: Path) -> None:
    assert await rows(tmp_path / "new", FIRST, SECOND) == [("red", 0)]
    await add_blue(tmp_path / "old")
    for _ in range(2):
        assert await rows(tmp_path / "old", FIRST, SECOND) == [("blue", None), ("red", 0)]


async def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    await add_blue(tmp_path / "old")
    with pytest.raises(sqlite3.OperationalError):
        await rows(tmp_path / "old", FIRST, SECOND, BROKEN)
    assert await rows(tmp_path / "old", FIRST) == [("blue",), ("red",)]


async def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path) -> None:
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
