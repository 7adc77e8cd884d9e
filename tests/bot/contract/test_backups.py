"""Backups: what they take and leave, and that a database restored from one neither sends nor posts anything again."""

import asyncio
import os
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import click
import pytest
from sqlalchemy import text
from support.fakes.ports import FakeChat, FakeClock
from support.fakes.slack_reading import FakeSlackReading
from support.worlds.core_world import ANA, BEN, CoreWorld
from support.worlds.fault_world import JobApiOutside

from bot.cli.backup import back_up, back_up_database, mark_all_in_doubt, mark_restored_in_doubt
from bot.domain.messages import FileContent, SlackFile
from bot.domain.people import Member
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import (
    NOT_SENT_YET,
    Action,
    Attachments,
    Person,
    Reply,
    RequestKind,
    RequestState,
    WayIn,
)
from bot.errors import ConfigError, JobApiUncertain, StoreUnavailable
from bot.queue.migration import SchemaState
from bot.store.backup import backup
from bot.store.schema.migration import migrate, schema_state
from bot.store.store import Store, Transaction, open_store

pytestmark = pytest.mark.promise("backups")


class Recording:
    """A store that is copied after each transaction."""

    def __init__(self, store: Store, made: Callable[[], None]) -> None:
        self._store, self._made = store, made

    async def transact(self, work: Callable[[Transaction], Awaitable[Any]], *, urgent: bool = False) -> Any:
        result = await self._store.transact(work, urgent=urgent)
        self._made()
        return result

    async def close(self) -> None:
        await self._store.close()


@dataclass
class Copies:
    """Copies of a SQLite database, one after each transaction that changed something."""

    database: Path
    made: list[Path] = field(default_factory=list)

    def make(self) -> None:
        copy = self.database.with_name(f"copy-{len(self.made)}.sqlite3")
        with closing(sqlite3.connect(self.database)) as database:
            database.execute("VACUUM INTO ?", (str(copy),))
        if self.made and copy.read_bytes() == self.made[-1].read_bytes():
            copy.unlink()
            return
        self.made.append(copy)


@dataclass
class Outside:
    """The parts that survive a restore."""

    clock: FakeClock = field(default_factory=FakeClock)
    job_api: JobApiOutside = field(default_factory=lambda: JobApiOutside(lambda: 0))
    chat: FakeChat = field(default_factory=FakeChat)
    reading: FakeSlackReading = field(default_factory=FakeSlackReading)

    def world(self, store: Store, owner: str = "one") -> CoreWorld:
        """An instance on a database."""
        world = CoreWorld(owner)
        world.store, world.clock, world.job_api, world.chat = store, self.clock, self.job_api, self.chat
        world.reading = self.reading
        world.idempotent, world.merge_seconds = self.job_api.honours_keys, 3.0
        return world.assemble()

    def taken(self) -> Counter[str]:
        """Returns how often the job API got each prompt and each reply."""
        messages = [words for sent in self.job_api.messages.values() for each in sent for words in each.split("\n\n")]
        return Counter([*self.job_api.created, *messages])

    def repeated(self) -> list[str]:
        """Returns what was posted more than once."""
        return [key for key, count in Counter(message.key for message in self.chat.messages).items() if count > 1]


async def ask(world: CoreWorld, prompt: str, key: str, person: Person = ANA) -> None:
    await world.service.start(NewJob(person, "C1", prompt, key, WayIn.COMMAND))


async def write(world: CoreWorld, thread_ts: str, text: str, person: Person = ANA, channel: str = "C1") -> None:
    at = f"{world.clock.now():.6f}"
    await world.service.receive(Reply(person, channel, thread_ts, at, text))
    world.clock.advance(0.5)


async def act(world: CoreWorld, kind: RequestKind, thread_id: str, key: str, argument: str = "") -> None:
    await world.service.act(Action(BEN, kind, key, thread_id=thread_id, argument=argument))


async def ask_with_files(world: CoreWorld, prompt: str) -> None:
    """Sends a mention with files, of which one goes to the job API itself."""
    at = f"{world.clock.now():.6f}"
    files = tuple(SlackFile(name, name, file.mimetype) for name, file in world.reading.files.items())
    await world.service.receive(Reply(ANA, "C1", "", at, prompt, Attachments(files), mentions_us=True))


async def a_day(world: CoreWorld) -> None:
    """People ask, also with files, reply quickly and slowly, stop, retry, and repeat requests in doubt; Slack
    changes the channel's id.
    """
    world.job_api.files_taken = True
    world.reading.files = {
        "notes.md": FileContent(b"The port is 8080", "text/markdown"),
        "a.png": FileContent(b"\x89PNG a", "image/png"),
    }
    await ask(world, "first", "k1")
    await world.settle()
    ts = world.chat.messages[0].ts
    thread = await world.thread(ts)
    for words in ("one", "two", "three"):
        await write(world, ts, words)
    await write(world, ts, "other", BEN)
    await ask(world, "second", "k2", BEN)
    await ask_with_files(world, "third")
    world.clock.advance(0.5)
    await world.service.follow_channel("C1", "C2", world.clock.now())
    await write(world, ts, "by the new id", channel="C2")
    await world.pass_time(10)
    world.job_api.after.append(JobApiUncertain("cut off"))
    await write(world, ts, "lost")
    await world.pass_time(10)
    uncertain = await requests_in(world.store, RequestState.UNCERTAIN)
    for request in uncertain:
        await act(world, RequestKind.SEND_AGAIN, thread.id, f"again/{request}", request)
    await world.pass_time(5)
    world.job_api.show("job-1", "failed")
    await world.pass_time(10)
    await act(world, RequestKind.RETRY, thread.id, "retry")
    await world.pass_time(10)
    await act(world, RequestKind.STOP, thread.id, "stop")
    await world.pass_time(10)


async def requests_in(store: Store, *states: RequestState) -> list[str]:
    async def work(tx: Transaction) -> list[str]:
        listed = ", ".join(f"'{state}'" for state in states)
        statement = f"SELECT id FROM requests WHERE state IN ({listed})"  # noqa: S608 - the test's own words
        return [row[0] for row in await tx.session.execute(text(statement))]

    return await store.transact(work)


async def recorded(live: Path, outside: Outside) -> tuple[CoreWorld, Copies]:
    """An instance on a new database, and copies of it, to which each transaction adds one."""
    await migrate(f"sqlite:///{live}")
    copies, store = Copies(live), await open_store(f"sqlite:///{live}", clock=outside.clock)
    return outside.world(cast("Store", Recording(store, copies.make))), copies


async def run_on(world: CoreWorld) -> None:
    """Lets minutes pass."""
    for _ in range(6):
        world.clock.advance(20)
        await world.settle()


@pytest.mark.full
@pytest.mark.parametrize("every", [16, pytest.param(4, marks=pytest.mark.full)])
@pytest.mark.parametrize("keys", [False, pytest.param(True, marks=pytest.mark.full)], ids=["no keys", "keys honoured"])
async def test_a_restored_backup_of_any_moment_repeats_nothing(scratch: Path, *, keys: bool, every: int) -> None:
    """Some of the copies after each transaction of a day are restored after it, and continued."""
    outside = Outside()
    outside.job_api.honours_keys = keys
    world, copies = await recorded(scratch / "live.sqlite3", outside)
    await a_day(world)
    await world.store.close()
    assert len(copies.made) > 100
    assert outside.job_api.uploads
    assert outside.taken()["by the new id"] == 1
    for copy in copies.made[keys::every]:
        await restored_without_repeating(copy, outside)


async def restored_without_repeating(copy: Path, outside: Outside) -> None:
    """An instance continues with a copy, after the whole day."""
    after = deepcopy(outside)
    restored = await open_store(f"sqlite:///{copy}", clock=after.clock)
    await mark_all_in_doubt(restored)
    await run_on(after.world(restored))
    assert not after.taken() - outside.taken(), copy
    assert not after.repeated(), copy
    assert not await requests_in(restored, *NOT_SENT_YET, RequestState.SENDING), copy
    await restored.close()


@pytest.mark.full
async def test_a_running_instance_is_not_disturbed(database: str) -> None:
    """It is refused while anybody has the database open, and works once nobody has."""
    store = await open_store(database)
    await store.transact(lambda tx: tx.claims.release("nobody"))
    with pytest.raises(StoreUnavailable, match="using this database"):
        await asyncio.to_thread(mark_restored_in_doubt, {"DATABASE_URL": database})
    await store.close()
    said = await asyncio.to_thread(mark_restored_in_doubt, {"DATABASE_URL": database})
    assert said == "Nothing was open when this backup was made: nothing is in doubt."


@pytest.mark.full
async def test_actions_of_people_are_not_repeated_after_a_restore(store: Store, clock: FakeClock) -> None:
    """A stop is asked about in the thread; a person who pressed a button is asked to check."""
    outside = Outside(clock)
    outside.job_api.cancels = True
    world = outside.world(store)
    ts = await world.started()
    thread_id = (await world.thread(ts)).id
    await act(world, RequestKind.STOP, thread_id, "stop")
    await act(world, RequestKind.RETRY, thread_id, "retry")
    await act(world, RequestKind.MUTE, thread_id, "mute")
    assert (await mark_all_in_doubt(store))[1] == 2
    await run_on(world)
    assert not outside.job_api.cancelled
    assert outside.job_api.created == ["Do it"]
    assert "request_uncertain" in outside.chat.said(ts)
    assert outside.chat.answers() == ["restored", "muted"]


async def test_a_refusal_is_detected_before_anything_is_posted(store: Store, clock: FakeClock) -> None:
    """Requests that were only received are prepared first: people without permission are told, with no post in the
    channel.
    """
    outside = Outside(clock)
    world = outside.world(store)
    world.reading.members["UANA"] = Member("UANA", "Ana", "T1", is_guest=True)
    await ask(world, "secret plans", "k1")
    await mark_all_in_doubt(store)
    await run_on(world)
    assert outside.chat.private_kinds() == [("UANA", "request_refused")]
    assert not outside.chat.messages


@pytest.mark.full
async def test_notices_resume_after_a_new_request(store: Store, clock: FakeClock) -> None:
    """Earlier posts are looked for only until something new is sent."""
    outside = Outside(clock)
    world = outside.world(store)
    ts = await world.started()
    before = deepcopy(outside.chat.messages)
    outside.job_api.show("job-1", "completed")
    await run_on(world)
    await write(world, ts, "again")
    await mark_all_in_doubt(store)
    assert (await world.thread(ts)).state.announcements.restored
    await run_on(world)
    (uncertain,) = await requests_in(store, RequestState.UNCERTAIN)
    await world.press_send_again(ANA, uncertain, key="p1")
    await run_on(world)
    assert not (await world.thread(ts)).state.announcements.restored
    assert outside.job_api.messages == {"job-1": ["again"]}
    assert before


async def test_a_backup_is_not_there_before_it_is_complete_and_overwrites_no_file(scratch: Path) -> None:
    """Whatever kills it meanwhile, nobody takes a copy for a backup that was not marked as in doubt."""
    live, copy = scratch / "live.sqlite3", scratch / "copy.sqlite3"
    await migrate(f"sqlite:///{live}")
    seen = []

    async def mark(_: str) -> None:
        seen.append(copy.exists())

    await backup(f"sqlite:///{live}", copy, mark_in_doubt=mark)
    assert (seen, sorted(await asyncio.to_thread(os.listdir, scratch))) == ([False], ["copy.sqlite3", "live.sqlite3"])
    assert sqlite3.connect(copy).execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with pytest.raises(StoreUnavailable, match="already"):
        await back_up(f"sqlite:///{live}", copy)


def test_of_backups_by_date_the_newest_are_kept(scratch: Path) -> None:
    environ, kept = {"DATABASE_URL": f"sqlite:///{scratch}/live.sqlite3"}, scratch / "backups"
    asyncio.run(migrate(environ["DATABASE_URL"]))
    kept.mkdir()
    others = [
        kept / name for name in ("mine.sqlite3", "pagehand-2026.sqlite3", "pagehand-20260101T000000Z.sqlite3.old")
    ]
    for other in others:
        other.touch()
    link = kept / "pagehand-20200101T000000Z.sqlite3"
    link.symlink_to(others[0])
    for day in (1, 2, 3, 4):
        back_up_database(environ, str(kept), 2 if day > 3 else None, now=datetime(2026, 11, day, 4, tzinfo=UTC))
    made = [kept / f"pagehand-2026110{day}T040000Z.sqlite3" for day in (3, 4)]
    assert sorted(kept.iterdir()) == sorted([*others, link, *made])
    back_up_database(environ, str(kept), 1, now=datetime(2026, 11, 1, tzinfo=UTC))
    assert sorted(kept.iterdir()) == sorted([*others, link, kept / "pagehand-20261101T000000Z.sqlite3"]), (
        "a wrong clock"
    )
    with pytest.raises(click.UsageError, match="needs a directory"):
        back_up_database(environ, str(others[0]), 7, now=datetime.now(UTC))


async def test_a_backup_can_be_made_before_migrating(scratch: Path) -> None:
    """The older version can make it before a migration; what may be sent meanwhile is still marked in doubt."""
    live, copy = scratch / "live.sqlite3", scratch / "copy.sqlite3"
    await migrate(f"sqlite:///{live}")
    world = Outside().world(await open_store(f"sqlite:///{live}"))
    await world.start("Fix the intro")
    await world.store.close()
    with closing(sqlite3.connect(live)) as database, database:
        database.execute("UPDATE pagehand_schema SET version_num = '0016'")
    await back_up(f"sqlite:///{live}", copy)
    with closing(sqlite3.connect(copy)) as database:
        assert database.execute("SELECT count(*) FROM notices WHERE uncertain").fetchone()[0] > 0
    assert await schema_state(f"sqlite:///{copy}") is SchemaState.TOO_OLD


@pytest.mark.parametrize("url", ["postgresql://u:planted@h/d", "nonsense", "sqlite:////nowhere/at/all.sqlite3"])
async def test_a_failed_backup_explains_itself(scratch: Path, url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        await back_up(url, scratch / "copy.sqlite3")
    assert "planted" not in str(caught.value)
