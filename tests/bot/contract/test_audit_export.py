"""`pagehand export` as people run it, on both databases, while a bot uses them."""

import asyncio
import json
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from support.fakes.ports import FakeClock
from support.worlds.finished_jobs import fill_activity

from bot.cli.export import PAGE_SIZE, Period, entries, line, period
from bot.domain.requests.audit import AuditAction, AuditEntry, RecordedEntry
from bot.domain.requests.request import Person
from bot.store.database.engine import engine_for
from bot.store.store import Store, Transaction

pytestmark = pytest.mark.either_database

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
ENTRY = AuditEntry(AuditAction.STEERED, Person("UANA", "T1"), "C1", "t1", "job-1", "docs", "reply")
HERE = Path(__file__).parents[3]
PATIENCE = 300.0


async def start(database: str, *arguments: str, stdout: int = asyncio.subprocess.PIPE) -> asyncio.subprocess.Process:
    """Starts the command as a person would, in a separate process."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(HERE), "DATABASE_URL": database}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-m", "bot", "export", *arguments),
        env=environment,
        stdout=stdout,
        stderr=asyncio.subprocess.PIPE,
    )


async def run(database: str, *arguments: str) -> tuple[int | None, list[dict[str, Any]], str]:
    """The exit code, the printed entries, and the rest of the output."""
    process = await start(database, *arguments)
    async with asyncio.timeout(PATIENCE):
        out, said = await process.communicate()
    return process.returncode, [json.loads(each) for each in out.decode().splitlines()], said.decode()


async def record(store: Store, *those: AuditEntry) -> None:
    async def work(tx: Transaction) -> None:
        for entry in those:
            await tx.audit.add(entry)

    await store.transact(work)


async def test_entries_are_exported_as_json_lines_oldest_first(database: str, store: Store, clock: FakeClock) -> None:
    """Each entry has its time in UTC, and null for unknown values; the store stays in use meanwhile."""
    await record(store, ENTRY)
    clock.advance(3600)
    refused = AuditEntry(AuditAction.REFUSED, Person("UGUS", "T2"), "C2", reason="guest ✋ \u2028")
    await record(store, refused)
    code, found, said = await run(database)
    assert (code, said) == (0, "")
    first, second = found
    assert list(first) == [
        "at", "action", "person", "team", "channel", "thread", "job", "project", "way_in", "reason"
    ]  # fmt: skip
    at = datetime.fromisoformat(first.pop("at"))
    assert (at.utcoffset(), abs(at.timestamp() - clock.now() + 3600) < 0.001) == (timedelta(0), True)
    assert first == {
        "action": "steered", "person": "UANA", "team": "T1", "channel": "C1", "thread": "t1", "job": "job-1",
        "project": "docs", "way_in": "reply", "reason": None,
    }  # fmt: skip
    assert (second["action"], second["reason"], second["job"]) == ("refused", "guest ✋ \u2028", None)


async def test_many_are_exported_in_pages_each_once(database: str) -> None:
    """They are in the order of their times."""
    engine = engine_for(database)
    count = 2 * PAGE_SIZE + 17
    async with engine.begin() as connection:
        await fill_activity(connection, count)
    await engine.dispose()
    code, found, _ = await run(database, "--since", "2000-01-01")
    assert (code, len(found)) == (0, count)
    times = [entry["at"] for entry in found]
    assert times == sorted(times)
    assert len(set(times)) == count


@pytest.mark.full
async def test_a_reader_that_closes_the_pipe_early_gets_no_error(database: str) -> None:
    """As in `pagehand export | head`."""
    engine = engine_for(database)
    async with engine.begin() as connection:
        await fill_activity(connection, 2 * PAGE_SIZE)
    await engine.dispose()
    reads, writes = os.pipe()
    process = await start(database, stdout=writes)
    os.close(writes)
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE):
        assert (await asyncio.to_thread(os.read, reads, 10)).startswith(b'{"at"')
        os.close(reads)
        said = await process.stderr.read()
        code = await process.wait()
    assert (code, said) == (0, b"")


async def test_at_most_one_page_is_read_at_once(store: Store, clock: FakeClock) -> None:
    """However many there are: each page is printed before the next is read."""
    await record(store, *(replace(ENTRY, job_id=str(number)) for number in range(10)))
    transactions = 0
    transact = store.transact

    async def counted(work: Any, **options: Any) -> Any:
        nonlocal transactions
        transactions += 1
        return await transact(work, **options)

    store.transact = counted  # type: ignore[method-assign]  # only watched
    seen = 0
    async for _ in entries(store, Period(0.0, clock.now() + 1), page_size=4):
        seen += 1
        assert transactions == 1 + (seen - 1) // 4
    assert (seen, transactions) == (10, 3)


@pytest.mark.full
async def test_a_failed_export_explains_itself(tmp_path: Path) -> None:
    """A mistake in the options, and a database that does not exist."""
    nowhere = f"sqlite:///{tmp_path}/nowhere.sqlite3"
    code, found, said = await run(nowhere, "--since", "yesterday")
    assert (code, found) == (2, [])
    assert "--since 'yesterday' is not a time: write a date (2026-11-01)" in said
    code, _, said = await run(nowhere)
    assert code == 2
    assert said.startswith("Nothing can be exported. Please set in the environment:")
    assert not (tmp_path / "nowhere.sqlite3").exists()


async def test_audit_export_help_has_examples(tmp_path: Path) -> None:
    """There are examples, and every field is explained."""
    process = await start("", "--help")
    out, _ = await process.communicate()
    words = out.decode()
    assert process.returncode == 0
    for word in ("--since 7d", "jq", "way_in", "null", "PAGEHAND_KEEP_DAYS", *map(str, AuditAction)):
        assert word in words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("24h", NOW - timedelta(days=1)),
        ("7d", NOW - timedelta(days=7)),
        (" 2w ", NOW - timedelta(days=14)),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T12:30", datetime(2026, 11, 1, 12, 30, tzinfo=UTC)),
        ("2026-11-01 12:30:05+02:00", datetime(2026, 11, 1, 10, 30, 5, tzinfo=UTC)),
        ("999999w", datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_common_time_formats_are_accepted(text: str, expected: datetime) -> None:
    """They are in UTC, unless they say otherwise."""
    assert period(text, "", now=NOW).since == expected.timestamp()
    if expected.year > 1970:
        assert period("", text, now=NOW).until == expected.timestamp()


@pytest.mark.parametrize(
    "text", ["", "7", "d", "7 days", "-7d", "7m", "1234567d", "2026-13-01", "2026-11-01T25:00", "x" * 99]
)  # fmt: skip
def test_invalid_times_are_refused(text: str) -> None:
    """The message names the option; nothing is guessed."""
    if text:
        with pytest.raises(click.UsageError, match="--since"):
            period(text, "", now=NOW)
    else:
        assert period(text, text, now=NOW) == Period(0.0, NOW.timestamp() + 1)


def test_a_period_that_ends_before_it_begins_is_refused() -> None:
    """It does not export nothing silently."""
    with pytest.raises(click.UsageError, match="before --until"):
        period("7d", "8d", now=NOW)


def test_line_breaks_in_an_entry_are_escaped() -> None:
    """Whatever the recorded values are."""
    text = line(RecordedEntry(1, 0.0, replace(ENTRY, reason='a\n"b\u2028c')))
    assert text.count("\n") == 1
    assert text.isascii()
    assert json.loads(text)["at"] == "1970-01-01T00:00:00.000Z"
