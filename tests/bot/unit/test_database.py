"""The database's place, contents and faults: what is refused, and with which message."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_type_hints

import asyncpg
import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic_core import from_json
from sqlalchemy.exc import DBAPIError, InterfaceError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from support.databases import engine_for
from support.fakes.ports import FakeClock
from support.fakes.virtual_loop import in_virtual_time
from support.worlds.any_notices import any_messages
from support.worlds.thread_states import PARTS, thread_state

from bot.cli.database import PLATFORMS, location_faults
from bot.cli.main import main
from bot.domain.findings import LastTime
from bot.domain.jobs.job import Problem
from bot.domain.threads.thread import ThreadState
from bot.errors import SchemaMismatch, StoreError, StoreUnavailable
from bot.jobapi.models import Job
from bot.notices.notice import NoticeContent, NoticeKey
from bot.queue.columns import LONGEST_KEY, shortened_key, storable, storable_json
from bot.queue.errors import classify, retry_transient
from bot.runtime.health import (
    EXPIRY_SECONDS,
    RECORDING_RECOVERY_SECONDS,
    RECOVERY_SECONDS,
    SERVICE_RECOVERY_SECONDS,
    ComponentStatus,
    Health,
    Outage,
    RecordingHealth,
)
from bot.scheduler.database_check import PROBE_EVERY, PROBE_RETRY, SLOW_WRITE, DatabaseProbe
from bot.store.schema.rows import adapter, message_from, message_text, state_from, state_json

FILE, POSTGRES = "sqlite:////nowhere/pagehand.sqlite3", "postgresql://user:planted@host/name"
SETTINGS = {
    "SLACK_BOT_TOKEN": "xoxb-planted",
    "SLACK_SIGNING_SECRET": "planted-signing-secret",
    "JOB_API_URL": "http://127.0.0.1:9",
    "JOB_API_KEY": "planted-key",
    "JOB_API_PROJECT": "docs",
}


@pytest.mark.parametrize("variable", PLATFORMS)
def test_a_file_on_ephemeral_storage_is_refused(variable: str) -> None:
    (name, has_disks), given = PLATFORMS[variable], {variable: "anything"}
    (words,) = location_faults({"DATABASE_URL": FILE, **given})
    assert words.startswith("DATABASE_URL names a file")
    assert f"{name} deletes files" in words
    assert ("persistent disk" in words) is has_disks
    mounted = "sqlite:////proc/pagehand.sqlite3"
    assert bool(location_faults({"DATABASE_URL": mounted, **given})) is not has_disks
    assert not location_faults({"DATABASE_URL": POSTGRES, **given})
    assert not location_faults({"DATABASE_URL": FILE, variable: "", "HOME": "/root"})


@pytest.mark.parametrize(
    "url", ["sqlite:///pagehand.sqlite3", "sqlite+aiosqlite:////data/x", "SQLITE:///x", "sqlite://["]
)
def test_a_shared_file_is_refused(url: str) -> None:
    (words,) = location_faults({"DATABASE_URL": url}, shared_by="web")
    assert "`pagehand run`, which does everything in one process" in words
    assert not location_faults({"DATABASE_URL": POSTGRES}, shared_by="web")


SHARES = "`pagehand {}` shares its database with other processes"


@pytest.mark.parametrize(
    ("command", "given", "words"),
    [
        ("web", {}, [SHARES.format("web")]),
        ("worker", {}, [SHARES.format("worker")]),
        ("web", {"JOB_API_KEY": ""}, ["JOB_API_KEY is missing", SHARES.format("web")]),
        ("run", {"DYNO": "worker.1"}, ["Heroku deletes files"]),
        ("migrate", {"DYNO": "worker.1"}, ["Heroku deletes files"]),
    ],
)
def test_no_role_starts_with_a_file_that_is_lost_or_not_shared(
    command: str, given: dict[str, str], words: list[str]
) -> None:
    """Other errors are listed along with it."""
    ended = CliRunner().invoke(main, [command], env=SETTINGS | {"DATABASE_URL": ""} | given)
    assert ended.exit_code == 2
    assert [each for each in words if each not in ended.stderr] == []
    assert "planted" not in ended.output


def test_every_command_reads_the_database_url_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = tmp_path / "database-url"
    named.write_text(f"sqlite:///{tmp_path}/pagehand.sqlite3\n")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    given = {"DATABASE_URL": "", "DATABASE_URL_FILE": str(named)}
    assert CliRunner().invoke(main, ["migrate"], env=given).exit_code == 0
    lost = CliRunner().invoke(main, ["migrate"], env=given | {"DATABASE_URL_FILE": "/nowhere"})
    assert list(here.iterdir()) == [], "none is made where none was named"
    assert (tmp_path / "pagehand.sqlite3").exists()
    assert lost.exit_code == 2
    assert "DATABASE_URL_FILE names a file that cannot be read" in lost.stderr


class Database:
    """The store's interface: each write takes `seconds`, and then raises the fault."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.fault: Exception | None = None
        self.began: list[float] = []

    async def transact(self, work: Callable[[Any], Awaitable[Any]], *, urgent: bool = False) -> Any:
        self.began.append(asyncio.get_running_loop().time())
        await asyncio.sleep(self.seconds)
        if self.fault is not None:
            raise self.fault

    async def close(self) -> None:
        """Does nothing."""


@asynccontextmanager
async def probing() -> AsyncIterator[tuple[Database, RecordingHealth]]:
    """Runs the probe; afterwards nothing is under way."""
    database, recording_health = Database(), RecordingHealth(asyncio.get_running_loop().time)
    running = asyncio.create_task(DatabaseProbe(database, recording_health).run())
    yield database, recording_health
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert len(asyncio.all_tasks()) == 1, "a write that is under way ends, too"


@in_virtual_time
async def test_the_probe_writes_periodically_and_sooner_after_a_failure() -> None:
    async with probing() as (database, recording_health):
        await asyncio.sleep(1.5 * PROBE_EVERY)
        assert recording_health.status().ok()
        database.fault = StoreUnavailable("The database's disk is full.")
        await asyncio.sleep(PROBE_EVERY)
        assert not recording_health.status().ok()
        await asyncio.sleep(2 * PROBE_RETRY)
        assert database.began[:4] == [0, PROBE_EVERY, 2 * PROBE_EVERY, 2 * PROBE_EVERY + PROBE_RETRY]
        database.fault = None
        await asyncio.sleep(1.5 * PROBE_RETRY)
        assert recording_health.status().ok()
        await asyncio.sleep(RECORDING_RECOVERY_SECONDS)
        assert not recording_health.failing()


async def test_what_has_happened_is_told_to_the_first_write_that_succeeds() -> None:
    database, happened = Database(), {LastTime.EVENT}
    probe = DatabaseProbe(database, RecordingHealth(FakeClock().monotonic), happened=happened)
    left = []
    for database.fault in (StoreUnavailable("down"), None):
        await probe.probe()
        left.append(set(happened))
    assert left == [{LastTime.EVENT}, set()]


@in_virtual_time
async def test_a_slow_write_counts_before_it_ends() -> None:
    async with probing() as (database, recording_health):
        database.seconds = 100.0
        await asyncio.sleep(SLOW_WRITE + 1)
        assert recording_health.status().reason == "The database did not take a write in 5 s."
        assert not recording_health.status().ok()
        assert len(database.began) == 1


any_text = st.text(st.characters(), max_size=40)
"""Lone surrogates and NUL are among these."""
times = st.floats(min_value=0, max_value=1e10)
jobs = st.builds(Job, any_text, any_text, *([st.none() | any_text] * 6))
states = st.builds(
    thread_state,
    job=st.none() | jobs,
    round=st.integers(0, 1000),
    announced=st.frozensets(any_text.map(NoticeKey)),
    links=st.lists(any_text).map(tuple),
    problem=st.none() | st.sampled_from(Problem),
    problem_text=any_text,
    not_found_count=st.integers(0, 10),
    outage_since=st.none() | times,
    outage_announced=st.booleans(),
    outage_count=st.integers(0, 10),
    changed_at=times,
    poll_until=times,
    participants=st.lists(any_text).map(tuple),
)


@given(any_text)
@example("\0")
@example("\ud83d\ude00")
@example("\ude00\ud83d")
def test_cleaned_text_can_be_stored_and_cleaning_is_idempotent(text: str) -> None:
    once = storable(text)
    assert "\0" not in once
    once.encode()
    assert storable(once) == once


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8")))
def test_storable_text_is_unchanged(text: str) -> None:
    assert storable(text) == text


def test_a_split_surrogate_pair_is_joined() -> None:
    assert storable("\ud83d\ude00") == "\U0001f600"


@given(states)
def test_a_stored_state_is_loaded_clean_and_otherwise_unchanged(state: ThreadState) -> None:
    text = state_json(state)
    text.encode()
    expected = storable_json(adapter(ThreadState).dump_python(state, mode="json"))
    assert state_from(text) == adapter(ThreadState).validate_python(expected)


@given(any_messages())
def test_any_message_round_trips_as_one_line_of_json(message: NoticeContent) -> None:
    text = message_text(message)
    text.encode()
    assert "\0" not in text
    assert "\n" not in text
    kept = message_from(text, message.delivery)
    assert type(kept) is type(message)
    assert message_text(kept) == text


def test_fields_of_newer_versions_are_ignored_and_missing_ones_filled() -> None:
    assert state_from('{"round": 3, "mood": "good"}') == ThreadState(round=3)


def test_the_fields_of_a_state_are_stored_flat() -> None:
    names = [name for name in ThreadState.__dataclass_fields__ if name not in PARTS]
    names += [name for part in PARTS.values() for name in get_type_hints(part)]
    assert len(set(names)) == len(names)
    assert from_json(state_json(ThreadState())).keys() == set(names)


@given(st.text(max_size=LONGEST_KEY * 2), st.text(max_size=5))
def test_long_keys_are_shortened_and_stay_distinct(key: str, end: str) -> None:
    bounded = shortened_key(key)
    assert len(bounded) <= LONGEST_KEY
    assert shortened_key(bounded) == bounded
    if len(key) <= LONGEST_KEY and "\0" not in key:
        assert bounded == key
    if end:
        assert shortened_key("x" * LONGEST_KEY + key + storable(end)) != shortened_key("x" * LONGEST_KEY + key)


def sqlite_error(code: int, words: str = "no") -> DBAPIError:
    error = sqlite3.OperationalError(words)
    error.sqlite_errorcode = code
    return DBAPIError("SELECT 1", {}, error)


@pytest.mark.parametrize(
    "error",
    [
        sqlite_error(sqlite3.SQLITE_BUSY),
        asyncpg.DeadlockDetectedError("no"),
        asyncpg.CannotConnectNowError("no"),
        asyncpg.TooManyConnectionsError("no"),
        asyncpg.QueryCanceledError("no"),
        asyncpg.ReadOnlySQLTransactionError("no"),
        asyncpg.InterfaceError("connection is closed"),
        asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"),
        InterfaceError("SELECT 1", {}, Exception("connection is closed")),
        DBAPIError("SELECT 1", {}, Exception("no"), connection_invalidated=True),
        PoolTimeout("no"),
        ConnectionRefusedError("no"),
        TimeoutError(),
    ],
    ids=lambda error: type(getattr(error, "orig", error)).__name__,
)
def test_transient_database_errors_are_retried(error: Exception) -> None:
    failure = classify(error)
    assert failure is not None
    assert failure.transient
    assert isinstance(failure.error, StoreUnavailable)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (sqlite_error(sqlite3.SQLITE_FULL), StoreUnavailable, "disk is full"),
        (sqlite_error(sqlite3.SQLITE_READONLY_DBMOVED), StoreUnavailable, "may not be written"),
        (sqlite_error(sqlite3.SQLITE_CORRUPT), StoreError, "backup"),
        (
            sqlite_error(sqlite3.SQLITE_ERROR, "no such column: mood"),
            SchemaMismatch,
            "a job server brings its own up to date",
        ),
        (sqlite_error(sqlite3.SQLITE_CONSTRAINT), StoreError, "did not do"),
        (asyncpg.DiskFullError("no"), StoreUnavailable, "disk is full"),
        (asyncpg.UndefinedTableError("no"), SchemaMismatch, "migrate"),
        (asyncpg.InvalidPasswordError("no"), StoreError, "password"),
        (asyncpg.InvalidCatalogNameError("no"), StoreError, "no database of this name"),
        (asyncpg.InvalidSQLStatementNameError("no"), StoreError, "statement_cache_size=0"),
        (asyncpg.CheckViolationError("no"), StoreError, "23514"),
    ],
)
def test_lasting_database_errors_are_explained(error: Exception, kind: type[StoreError], words: str) -> None:
    failure = classify(error)
    assert failure is not None
    assert not failure.transient
    assert type(failure.error) is kind
    assert words in str(failure.error)


def test_what_to_check_is_said_where_no_database_answers() -> None:
    failure = classify(ConnectionRefusedError())
    assert failure is not None
    assert "(ConnectionRefusedError). Check DATABASE_URL, and that it runs." in str(failure.error)


async def test_an_error_of_the_work_itself_is_unchanged() -> None:
    async def attempt(_end: float) -> None:
        raise LookupError("mine")

    assert classify(LookupError("mine")) is None
    with pytest.raises(LookupError, match="mine"):
        await retry_transient(attempt)


async def test_retrying_ends() -> None:
    tries = 0

    async def attempt(end: float) -> None:
        nonlocal tries
        tries += 1
        assert end > asyncio.get_running_loop().time() - 1
        raise sqlite_error(sqlite3.SQLITE_BUSY)

    with pytest.raises(StoreUnavailable, match="locked"):
        await retry_transient(attempt, retry_for=0.2)
    assert 1 < tries < 20


@pytest.mark.parametrize(
    "url", ["postgres://a:planted@b/c", "postgresql://a:planted@b/c", "postgresql+psycopg://a:planted@b/c"]
)
def test_an_engine_does_not_show_the_password(url: str) -> None:
    engine = engine_for(url)
    assert engine.dialect.driver == "asyncpg"
    assert "planted" not in f"{engine!r} {engine.url}"


def test_a_momentary_failure_is_shown_and_keeps_the_bot_healthy() -> None:
    state = Health(
        lambda: [ComponentStatus("request sender"), ComponentStatus("outbox", 10.0, "no connection")]
    ).report()
    assert state["ok"] is True
    assert state["parts"] == {"request sender": "works", "outbox": "has not worked for 10 s: no connection"}


def test_vital_parts_decide_readiness_and_warnings_are_separate() -> None:
    parts = [
        ComponentStatus("recording", critical=True, grace_seconds=0.0),
        ComponentStatus("slack connection", 1.0, "lost", critical=True),
        ComponentStatus("watch"),
    ]
    words = ["", "the scope im:history is missing"]
    health = Health(lambda: parts, [lambda word=word: word for word in words])  # type: ignore[misc]  # mypy can't tell
    assert health.readiness() == {
        "ok": False,
        "parts": {"recording": "works", "slack connection": "has not worked for 1 s: lost"},
    }
    assert health.report()["ok"] is True
    assert health.report()["warnings"] == ["the scope im:history is missing"]
    parts[:2] = [
        ComponentStatus("recording", 1.0, "disk full", critical=True, grace_seconds=0.0),
        ComponentStatus("slack connection", critical=True),
    ]
    assert health.readiness()["ok"] is False
    assert health.report()["ok"] is False


def test_a_failure_of_five_minutes_and_its_recovery_are_logged_once_each(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    parts = [ComponentStatus("recording", 1.0, "disk full", critical=True, grace_seconds=0.0)]
    health = Health(lambda: parts)
    health.log_changes()
    assert not caplog.records, "a momentary one is not"
    for failing in (ComponentStatus("outbox", 300.0, "token_revoked"), ComponentStatus("outbox")):
        parts[:] = [failing]
        health.log_changes()
        health.log_changes()
        assert health.report()["ok"] is not bool(failing.failing_seconds)
    assert caplog.messages == ["outbox has not worked for 5 minutes: token_revoked", "outbox works again"]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def outage(clock: FakeClock) -> Outage:
    return Outage("JobPoller", clock.monotonic)


def seconds(outage: Outage) -> float:
    return outage.status("").failing_seconds


def test_a_flapping_part_is_one_outage_with_two_log_lines(
    outage: Outage, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(112):
        outage.record_failure("disk full")
        clock.advance(1)
        outage.record_success()
        clock.advance(29)
    assert seconds(outage) == 111 * 30 + 1
    outage.record_success()
    clock.advance(RECOVERY_SECONDS)
    outage.record_success()
    assert seconds(outage) == 0
    assert [record.getMessage() for record in caplog.records] == [
        "JobPoller: not working, will keep trying: disk full",
        f"JobPoller: works again after {111 * 30 + 1} s",
    ]


def test_one_success_restores_the_health_without_ending_the_outage(outage: Outage, clock: FakeClock) -> None:
    for _ in range(4):
        clock.advance(100)
        outage.record_failure("disk full")
    clock.advance(10)
    assert not outage.status("job poller").ok()
    outage.record_success()
    assert outage.status("job poller").ok()
    clock.advance(RECOVERY_SECONDS - 1)
    assert (seconds(outage), outage.status("").reason) == (310, "disk full")
    clock.advance(1)
    assert seconds(outage) == 0


def test_recovery_time_does_not_count_as_failing(outage: Outage, clock: FakeClock) -> None:
    """Otherwise an outage of four minutes would count as one of over five after its end."""
    for _ in range(8):
        outage.record_failure("restarting")
        clock.advance(30)
    outage.record_success()
    clock.advance(RECOVERY_SECONDS - 1)
    assert seconds(outage) == 240
    outage.record_failure("restarting again")
    assert seconds(outage) == 240 + RECOVERY_SECONDS - 1


def test_the_next_outage_is_logged_like_the_first(
    outage: Outage, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    outage.record_success()
    assert (seconds(outage), caplog.records) == (0, [])
    outage.record_failure("first")
    clock.advance(EXPIRY_SECONDS + 1)
    assert seconds(outage) == 0
    outage.record_failure("second")
    assert seconds(outage) == 0
    clock.advance(10)
    assert seconds(outage) == 10
    clock.advance(EXPIRY_SECONDS)
    outage.end_if_over()
    assert [record.levelno for record in caplog.records] == [logging.ERROR, logging.ERROR]
    outage.record_success()
    assert caplog.records[2].getMessage() == "JobPoller: works again after 130 s"
    outage.record_success()
    assert len(caplog.records) == 3


def test_outages_further_apart_than_the_recovery_are_separate(clock: FakeClock) -> None:
    outage = Outage("Slack", clock.monotonic, recovery=SERVICE_RECOVERY_SECONDS)
    outage.record_failure("status_503")
    clock.advance(310)
    outage.record_success()
    clock.advance(30)
    outage.record_failure("status_503")
    clock.advance(10)
    assert seconds(outage) == 10


def test_an_outage_seen_by_several_workers_is_two_log_lines(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    """It begins with the first failure of any worker, and ends when it has ended for all."""
    caplog.set_level(logging.INFO)
    slack = Outage("Slack", clock.monotonic, recovery=20.0, levels=(logging.WARNING, logging.INFO))
    slack.record_failure("status_503", by="outbox")
    clock.advance(100)
    slack.record_failure("no answer in time", by="preparer")
    slack.record_success(by="outbox")
    clock.advance(1)
    assert slack.status("", by="outbox").ok(0.0)
    assert slack.status("").reason == "no answer in time"
    clock.advance(19)
    slack.end_if_over()
    assert len(caplog.records) == 1
    clock.advance(60)
    slack.record_success(by="preparer")
    clock.advance(20)
    slack.end_if_over()
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "Slack: not working, will keep trying: status_503"),
        ("INFO", "Slack: works again after 180 s"),
    ]
