"""Only the owner can read the database's files, whatever the process's umask."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.worlds.store_world import a_thread, add

from bot.cli.backup import back_up
from bot.errors import StoreUnavailable
from bot.store.schema.migration import migrate
from bot.store.store import open_store

NOBODY = 65534


@pytest.fixture(autouse=True)
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pagehand.sqlite3"


def owner_and_mode(file: Path) -> tuple[int, int]:
    return file.stat().st_uid, file.stat().st_mode & 0o777


def give_away(file: Path) -> None:
    os.chown(file, NOBODY, NOBODY)
    file.chmod(0o644)


def spoil(file: Path) -> None:
    file.write_text("This is not a database." * 100)


def modes(directory: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mode & 0o777 for file in directory.iterdir()}


async def test_a_new_database_and_its_backup_are_private_to_the_owner(path: Path) -> None:
    await migrate(f"sqlite:///{path}")
    store = await open_store(f"sqlite:///{path}")
    await add(store, a_thread())
    await back_up(f"sqlite:///{path}", path.with_name("copy.sqlite3"))
    names = (path.name, f"{path.name}-wal", f"{path.name}-shm", "copy.sqlite3")
    assert modes(path.parent) == dict.fromkeys(names, 0o600)
    await store.close()


async def test_an_existing_file_loses_permissions_for_others(path: Path) -> None:
    url = f"sqlite:///{path}"
    await migrate(url)
    first = await open_store(url)
    await add(first, a_thread())
    for file in path.parent.iterdir():
        file.chmod(0o664)
    second = await open_store(url)
    assert set(modes(path.parent).values()) == {0o600}
    for store in (first, second):
        await store.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
async def test_root_uses_another_owners_file_without_taking_it(path: Path) -> None:
    url = f"sqlite:///{path}"
    await migrate(url)
    give_away(path)
    await (await open_store(url)).close()
    assert owner_and_mode(path) == (NOBODY, 0o600)


async def test_a_failed_copy_leaves_no_file(path: Path) -> None:
    spoil(path)
    with pytest.raises(StoreUnavailable, match="copy failed"):
        await back_up(f"sqlite:///{path}", path.with_name("copy.sqlite3"))
    assert list(modes(path.parent)) == [path.name]
