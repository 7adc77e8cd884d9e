"""The audit trail in the store: its order and pages, a log line for each committed entry, and deletion."""

import asyncio
import json
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest
from support.databases import engine_for
from support.fakes.ports import FakeClock
from support.worlds.finished_jobs import fill_activity
from support.worlds.store_world import Opener, Sql, StoreWorld, a_follow_up, a_start, a_thread

from bot.cli.personal_data import PAGE_SIZE, entries, line, period
from bot.domain.people import Preference
from bot.domain.requests.audit import AuditAction, AuditEntry, RecordedEntry
from bot.domain.requests.request import MessageVersion, Person, RequestState
from bot.errors import StoreUnavailable
from bot.runtime.logging import TextFormatter
from bot.scheduler.retention import DAY, HELD_DAYS, HOME_DAYS, RetentionSweeper
from bot.store.retention import Deleted
from bot.store.store import Transaction

pytestmark = [pytest.mark.either_database, pytest.mark.promise("audit")]

ANA = Person("UANA", "T1")
ASKED = AuditEntry(AuditAction.ASKED, ANA, "C1", "t1", "job-1", "docs", "command")
REFUSED = AuditEntry(AuditAction.REFUSED, Person("UGUS", "T2"), "C2", reason="guest")


async def record(store: StoreWorld, *those: AuditEntry) -> None:
    """Records these in one transaction, which has one time."""

    async def work(tx: Transaction) -> None:
        for entry in those:
            await tx.audit.add(entry)

    await store.transact(work)


async def exported(store: StoreWorld, since: float, until: float, page_size: int = 3) -> list[RecordedEntry]:
    return [entry async for entry in entries(store, since, until, page_size=page_size)]


def jobs_of(found: Sequence[RecordedEntry]) -> list[str]:
    return [recorded.entry.job_id for recorded in found]


async def rows(sql: Sql, table: str) -> int:
    ((number,),) = await sql(f"SELECT count(*) FROM {table}")  # noqa: S608 - a table of ours
    return int(number)


async def test_entries_are_paged_in_any_size(store: StoreWorld, clock: FakeClock) -> None:
    """Many entries of one transaction have one time: none is left out between two pages, and none is repeated."""
    begin = clock.now()
    await record(store, *(replace(ASKED, job_id=f"{number}") for number in range(7)))
    clock.advance(1)
    await record(store, REFUSED)
    found = list[RecordedEntry]()
    for page_size in (1, 2, 3, 7, 8, 100):
        found = await exported(store, begin, clock.now() + 1, page_size)
        assert jobs_of(found) == [*map(str, range(7)), ""]
        assert found[-1].entry == REFUSED
        assert [recorded.at for recorded in found] == [begin] * 7 + [begin + 1]
    assert found[0].entry == replace(ASKED, job_id="0")


async def test_a_period_includes_its_start_and_excludes_its_end(store: StoreWorld, clock: FakeClock) -> None:
    """So that two consecutive periods have each entry once."""
    begin = clock.now()
    for number in range(4):
        await record(store, replace(ASKED, job_id=str(number)))
        clock.advance(10)
    assert jobs_of(await exported(store, begin + 10, begin + 30)) == ["1", "2"]
    assert jobs_of(await exported(store, begin + 30, begin + 99)) == ["3"]
    assert await exported(store, begin + 99, begin + 100) == []


async def test_a_late_entry_is_sorted_by_its_time(store: StoreWorld, clock: FakeClock) -> None:
    """The order is by time, not by number."""
    begin = clock.now()
    await record(store, replace(ASKED, job_id="second"))
    clock.advance(-5)
    await record(store, replace(ASKED, job_id="first"))
    assert jobs_of(await exported(store, begin - 10, begin + 10, 1)) == ["first", "second"]


def text_of(record: logging.LogRecord) -> str:
    """Returns a line of the log, without its time, its level and its logger."""
    return TextFormatter([]).format(record).partition("bot.store.audit: ")[2]


async def test_each_entry_is_logged_in_one_line(store: StoreWorld, caplog: pytest.LogCaptureFixture) -> None:
    """The line has every known value, and nothing else."""
    caplog.set_level(logging.INFO, logger="bot.store.audit")
    await record(store, ASKED, REFUSED)
    assert [text_of(each) for each in caplog.records] == [
        "audit: asked person=UANA team=T1 channel=C1 thread=t1 job=job-1 project=docs way_in=command",
        "audit: refused person=UGUS team=T2 channel=C2 reason=guest",
    ]


async def test_no_field_can_forge_a_field_or_line_of_the_log(
    store: StoreWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """Values of more than a word are quoted and bounded."""
    caplog.set_level(logging.INFO, logger="bot.store.audit")
    await record(store, replace(ASKED, project="docs\naudit: asked person=UEVE", job_id='a b" c=d', reason="x" * 5_000))
    (line,) = caplog.records
    text = text_of(line)
    assert "\n" not in text
    assert r'project="docs\naudit: asked person=UEVE"' in text
    assert r'job="a b\" c=d"' in text
    assert len(text) < 700


async def test_uncommitted_entries_are_not_logged(store: StoreWorld, caplog: pytest.LogCaptureFixture) -> None:
    """Nor are they logged twice after a retry."""
    caplog.set_level(logging.INFO, logger="bot.store.audit")
    faults: list[Exception] = [KeyError(), StoreUnavailable("locked")]

    async def fails_at_first(tx: Transaction) -> None:
        await tx.audit.add(ASKED)
        if faults:
            raise faults.pop()

    for kind in (StoreUnavailable, KeyError):
        with pytest.raises(kind):
            await store.transact(fails_at_first)
    await store.transact(fails_at_first)
    assert [each.getMessage().split()[1] for each in caplog.records] == ["asked"]


async def test_transactions_sharing_a_commit_log_only_their_own_entries(
    another_store: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    """Each entry is logged once, however many are concurrent."""
    caplog.set_level(logging.INFO, logger="bot.store.audit")
    store = await another_store()
    await asyncio.gather(*(record(store, replace(ASKED, job_id=f"j{number}")) for number in range(30)))
    told = sorted(text_of(each).partition("job=")[2].split()[0] for each in caplog.records)
    assert told == sorted(f"j{number}" for number in range(30))


@pytest.mark.full
async def test_a_sweep_deletes_from_every_growing_table(store: StoreWorld, sql: Sql, clock: FakeClock) -> None:
    """Versions of messages after eight days, counted requests after two hours, drafts after a day, abandoned
    Homes and held replies, and audit entries with their jobs.
    """
    held = RequestState.AWAITING_PERSON
    await store.add(a_thread(), a_start(state=RequestState.ACCEPTED), a_follow_up("1.1", state=held))
    await store.add(a_thread("t2", ts="2.1"), a_start("t2", state=held))

    async def fill(tx: Transaction, numbers: range) -> None:
        for number in numbers:
            await tx.audit.add(ASKED)
            await tx.drafts.save(f"U{number}", "C1", "words")
            await tx.limits.count("UANA", f"r{number}")
            await tx.homes.opened(f"U{number}")
            await tx.message_versions.note(MessageVersion("C1", f"{number}.1", "UANA", ""))

    for first in range(0, 450, 50):  # in one transaction, a busy machine would exceed the time limit
        await store.transact(partial(fill, numbers=range(first, first + 50)))
    await store.transact(lambda tx: tx.preferences.save("UANA", Preference("docs")))
    begin = clock.now()
    await sql("UPDATE requests SET recorded_at = :begin", begin=begin)
    sweep = RetentionSweeper(store).sweep
    counted: dict[float, list[int]] = {}
    for days in (0.01, 0.05, 0.9, 1.1, HELD_DAYS + 0.1, HOME_DAYS + 0.1, 91):
        clock.advance((days * DAY) - (clock.now() - begin))
        await store.transact(lambda tx: tx.drafts.save("UNEW", "C1", "new"))
        await sweep()
        await store.deliver_all()  # unanswered ones are reported
        counted[days] = [
            await rows(sql, table)
            for table in ("message_versions", "counted_requests", "drafts", "requests", "homes", "audit")
        ]
    assert list(counted.values()) == [
        [450, 450, 451, 3, 450, 450], [450, 450, 451, 3, 450, 450], [450, 0, 451, 3, 450, 450],
        [450, 0, 1, 3, 450, 450], [450, 0, 1, 2, 450, 450], [0, 0, 1, 2, 0, 450], [0, 0, 1, 0, 0, 0],
    ]  # fmt: skip
    assert await rows(sql, "preferences") == 1


async def test_a_draft_changed_meanwhile_is_kept(store: StoreWorld, sql: Sql, clock: FakeClock) -> None:
    """A day counts from the last change."""
    await store.transact(lambda tx: tx.drafts.save("UANA", "C1", "one"))
    clock.advance(0.8 * DAY)
    await store.transact(lambda tx: tx.drafts.save("UANA", "C1", "two"))
    clock.advance(0.8 * DAY)
    await RetentionSweeper(store).sweep()
    assert await store.transact(lambda tx: tx.drafts.get("UANA", "C1")) == "two"
    assert await rows(sql, "drafts") == 1


async def fill_people(store: StoreWorld) -> None:
    async def work(tx: Transaction) -> None:
        for person in ("UANA", "UBEN"):
            for number in range(7):
                await tx.audit.add(replace(ASKED, person=Person(person, "T1"), channel_id=f"C{number % 2}"))
            for place in ("C1", "C2"):
                await tx.drafts.save(person, place, "words")
            await tx.preferences.save(person, Preference("docs"))
            await tx.homes.opened(person)
            await tx.limits.count(person, f"{person}-r1")

    await store.transact(work)


async def deleted(store: StoreWorld, forget: Callable[[Transaction], Awaitable[Deleted]]) -> Deleted:
    """In batches, until nothing is left."""
    total = Deleted()
    while batch := await store.transact(forget):
        total += batch
    return total


async def test_forgetting_a_person_deletes_their_actions_defaults_and_home(store: StoreWorld, sql: Sql) -> None:
    """However many there are; others keep theirs."""
    await fill_people(store)
    total = await deleted(store, lambda tx: tx.retention.forget_person("UANA", limit=3))
    assert total == Deleted(others=7 + 2 + 1 + 1 + 1)
    for table, left in (("audit", 7), ("drafts", 2), ("preferences", 1), ("homes", 1), ("counted_requests", 1)):
        assert await rows(sql, table) == left
        found = await sql(f"SELECT DISTINCT person_id FROM {table}")  # noqa: S608 - a table of ours
        assert [person for (person,) in found] == ["UBEN"]


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


@pytest.mark.full
async def test_entries_are_exported_as_json_lines_oldest_first(
    database: str, store: StoreWorld, clock: FakeClock
) -> None:
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


@pytest.mark.full
async def test_many_are_exported_each_once_and_a_reader_may_close_the_pipe_early(database: str) -> None:
    """In the order of their times; the latter as in `pagehand export | head`."""
    count = 2 * PAGE_SIZE + 17
    engine = engine_for(database)
    async with engine.begin() as connection:
        await fill_activity(connection, count)
    await engine.dispose()
    code, found, _ = await run(database, "--since", "2000-01-01")
    times = [entry["at"] for entry in found]
    assert (code, times, len(set(times))) == (0, sorted(times), count)
    reads, writes = os.pipe()
    process = await start(database, stdout=writes)
    os.close(writes)
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE):
        assert (await asyncio.to_thread(os.read, reads, 10)).startswith(b'{"at"')
        os.close(reads)
        assert (await process.stderr.read(), await process.wait()) == (b"", 0)


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
    assert period(text, "", now=NOW)[0] == expected.timestamp()
    if expected.year > 1970:
        assert period("", text, now=NOW)[1] == expected.timestamp()


@pytest.mark.parametrize(
    "text", ["", "7", "d", "7 days", "-7d", "7m", "1234567d", "2026-13-01", "2026-11-01T25:00", "x" * 99]
)  # fmt: skip
def test_invalid_times_are_refused(text: str) -> None:
    """The message names the option; nothing is guessed."""
    if text:
        with pytest.raises(click.UsageError, match="--since"):
            period(text, "", now=NOW)
    else:
        assert period(text, text, now=NOW) == (0.0, NOW.timestamp() + 1)


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
