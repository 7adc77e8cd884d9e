"""A backup is taken while the bot works, and a restore of it neither repeats nor forgets anything."""

import shutil
import sqlite3
from pathlib import Path

import pytest
from core_world import World
from fakes import FakeChat, FakeJobApi

from bot.errors import ConfigError
from bot.store.backup import backup
from bot.store.schema import migrate
from bot.store.store import open_store


async def opened(path: Path) -> World:
    world = World()
    world.store = await open_store(f"sqlite:///{path}", clock=world.clock)
    return world.assemble()


async def restored(path: Path, chat: FakeChat, job_api: FakeJobApi) -> World:
    world = await opened(path)
    world.chat, world.job_api = chat, job_api
    return world.assemble()


async def test_a_restore_sends_nothing_twice(tmp_path: Path) -> None:
    live, copy = tmp_path / "live.sqlite3", tmp_path / "copy.sqlite3"
    await migrate(f"sqlite:///{live}")
    world = await opened(live)
    ts = await world.started()
    world.job_api.show("job-1", "completed", "https://example.org/pull/1")
    world.clock.advance(5)
    await world.step(world.watch)
    await world.reply(ts, "more", "5.1")
    await backup(f"sqlite:///{live}", copy)
    await world.pass_time(10)
    said = world.chat.said(ts)
    await world.store.close()

    shutil.copy(copy, tmp_path / "restored.sqlite3")
    again = await restored(tmp_path / "restored.sqlite3", world.chat, world.job_api)
    again.clock.time = world.clock.time
    await again.pass_time(60)
    await again.store.close()
    assert world.job_api.created == ["Do it"]
    assert world.job_api.messages == {"job-1": ["more"]}
    assert said == ["started", "finished", "active_again"]
    # Only what became known after the backup is told again.
    assert again.chat.said(ts) == [*said, "unsure", "active_again"]


async def test_a_backup_is_whole_and_never_overwrites(tmp_path: Path) -> None:
    live, copy = tmp_path / "live.sqlite3", tmp_path / "copy.sqlite3"
    await migrate(f"sqlite:///{live}")
    await backup(f"sqlite:///{live}", copy)
    assert sqlite3.connect(copy).execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with pytest.raises(ConfigError, match="already"):
        await backup(f"sqlite:///{live}", copy)


@pytest.mark.parametrize("url", ["postgresql://u:planted@h/d", "nonsense", "sqlite:////nowhere/at/all.sqlite3"])
async def test_what_cannot_be_copied_is_said_in_words(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        await backup(url, tmp_path / "copy.sqlite3")
    assert "planted" not in str(caught.value)
