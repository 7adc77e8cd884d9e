"""A backup is made while the bot works, and its restore neither repeats nor loses anything."""

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
from support.fakes.ports import FakeChat, FakeJobApi
from support.worlds.core_world import CoreWorld

from bot.cli.backup import back_up, back_up_database
from bot.errors import ConfigError, StoreUnavailable
from bot.store.backup import backup
from bot.store.schema.migration import SchemaState, migrate, schema_state
from bot.store.store import open_store


async def opened(path: Path) -> CoreWorld:
    world = CoreWorld()
    world.store = await open_store(f"sqlite:///{path}", clock=world.clock)
    return world.assemble()


async def restored(path: Path, chat: FakeChat, job_api: FakeJobApi) -> CoreWorld:
    world = await opened(path)
    world.chat, world.job_api = chat, job_api
    return world.assemble()


async def test_a_restore_sends_nothing_twice(scratch: Path) -> None:
    live, copy = scratch / "live.sqlite3", scratch / "copy.sqlite3"
    await migrate(f"sqlite:///{live}")
    world = await opened(live)
    ts = await world.started()
    world.job_api.show("job-1", "completed", "https://example.org/pull/1")
    world.clock.advance(5)
    await world.step(world.job_poller)
    await world.reply(ts, "more", "5.1")
    await back_up(f"sqlite:///{live}", copy)
    await world.pass_time(10)
    said = world.chat.said(ts)
    await world.store.close()

    shutil.copy(copy, scratch / "restored.sqlite3")
    again = await restored(scratch / "restored.sqlite3", world.chat, world.job_api)
    again.clock.time = world.clock.time
    await again.pass_time(60)
    await again.store.close()
    assert world.job_api.created == ["Do it"]
    assert world.job_api.messages == {"job-1": ["more"]}
    assert said == ["job_started", "job_finished", "job_active_again"]
    # Only what became known after the backup is told again.
    assert again.chat.said(ts) == [*said, "request_uncertain", "job_active_again"]


async def test_a_backup_is_complete_and_never_overwrites_a_file(scratch: Path) -> None:
    live, copy = scratch / "live.sqlite3", scratch / "copy.sqlite3"
    await migrate(f"sqlite:///{live}")
    await back_up(f"sqlite:///{live}", copy)
    assert sqlite3.connect(copy).execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with pytest.raises(StoreUnavailable, match="already"):
        await back_up(f"sqlite:///{live}", copy)


async def test_a_backup_is_not_there_before_it_is_complete(scratch: Path) -> None:
    """Whatever kills it meanwhile, nobody takes a copy for a backup that was not marked as in doubt."""
    live, copy = scratch / "live.sqlite3", scratch / "copy.sqlite3"
    await migrate(f"sqlite:///{live}")
    seen = []

    async def mark(_: str) -> None:
        seen.append(copy.exists())

    await backup(f"sqlite:///{live}", copy, mark_in_doubt=mark)
    assert (seen, sorted(await asyncio.to_thread(os.listdir, scratch))) == ([False], ["copy.sqlite3", "live.sqlite3"])


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
    world = await opened(live)
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
