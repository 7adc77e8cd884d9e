"""The prepared copy of the newest base: equal to git's own checkout, for one job, and independent of the repository."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from support.worlds.jobserver_world import KEY, git, make_repository, until

from bot.jobserver.repository.git import Git
from bot.jobserver.repository.git_repository import GitRepository
from bot.jobserver.repository.mirror import BaseBranch, Mirror
from bot.jobserver.repository.ready_copy import ReadyCopy
from bot.jobserver.repository.working_copy import ChangeLimits
from bot.jobserver.settings import JobServerSettings

FILES = {
    "docs/lamp.md": "# Lamp\n",
    "docs/windows.txt": "One\nTwo\n",
    "tools/build.sh": "#!/bin/sh\n",
    "big.psd": "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 4\n",
    ".gitattributes": "*.psd filter=lfs diff=lfs merge=lfs -text\n*.txt text eol=crlf\n",
    "ünï/ço dé.md": "# É\n",
}
LIMITS = ChangeLimits(max_files=20, max_file_bytes=1000)
BRANCH = "pagehand/0123456789abcdef"


class World:
    """A repository, and two ways to its files: with a prepared copy, and without."""

    def __init__(self, tmp_path: Path, *, delay: float = 0) -> None:
        self.source = make_repository(tmp_path / "docs", FILES)
        (self.source / "tools/build.sh").chmod(0o755)
        (self.source / "docs/link.md").symlink_to("lamp.md")
        self.committed("More")
        self.tmp_path, self.place = tmp_path, tmp_path / "ready"
        settings = JobServerSettings(repository=str(self.source), api_key=KEY)
        self.mirror, self.base = Mirror(Git.for_settings(settings), tmp_path / "mirror.git"), BaseBranch("main")
        self.ready = ReadyCopy(self.mirror, self.place, LIMITS, delay=delay)
        self.ready.prepare()
        self.with_ready = GitRepository(self.mirror, self.base, LIMITS, self.ready)
        self.without = GitRepository(self.mirror, self.base, LIMITS)

    def committed(self, message: str) -> None:
        git(self.source, "add", "--all")
        git(self.source, "commit", "--quiet", "-m", message)

    async def is_begun(self) -> bool:
        return any(self.place.iterdir())

    async def is_ready(self, tree: str) -> bool:
        return {path.name for path in self.place.iterdir()} == {tree}

    @contextlib.asynccontextmanager
    async def keeping(self) -> AsyncIterator[str]:
        """Yields the prepared tree."""
        tree = (await self.with_ready.start(BRANCH)).tree
        task = asyncio.create_task(self.ready.keep(self.base))
        try:
            await until(lambda: self.is_ready(tree))
            yield tree
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def checked_out(self, repository: GitRepository, name: str, tree: str) -> Path:
        copy = self.tmp_path / "jobs" / name / "copy"
        copy.mkdir(parents=True)
        await repository.check_out(tree, copy)
        return copy


def listed(copy: Path) -> dict[str, tuple[int, bytes]]:
    paths = [Path(folder, name) for folder, _, names in os.walk(copy) for name in names]
    return {str(path.relative_to(copy)): (path.lstat().st_mode, path.read_bytes()) for path in paths}


async def test_the_ready_copy_equals_a_checkout(tmp_path: Path) -> None:
    """Modes, symlinks, line endings by attributes, LFS pointers; and git sees no changes in it."""
    world = World(tmp_path)
    async with world.keeping() as tree:
        inode = (world.place / tree / "copy/docs/lamp.md").stat().st_ino
        taken = await world.checked_out(world.with_ready, "a", tree)
        assert (taken / "docs/lamp.md").stat().st_ino == inode
    plain = await world.checked_out(world.without, "b", tree)
    assert listed(taken) == listed(plain)
    assert listed(taken)["docs/windows.txt"][1] == b"One\r\nTwo\r\n"
    assert (await world.with_ready.collect(tree, taken)).tree == tree


async def test_each_job_has_its_own_files(tmp_path: Path) -> None:
    """Writing in place changes no other job's files, and is detected."""
    world = World(tmp_path)
    async with world.keeping() as tree:
        first = await world.checked_out(world.with_ready, "a", tree)
        with (first / "docs/lamp.md").open("a") as stream:
            stream.write("Bright.\n")
        await until(lambda: world.is_ready(tree))
        second = await world.checked_out(world.with_ready, "b", tree)
    assert (second / "docs/lamp.md").read_text() == "# Lamp\n"
    assert all((first / name).stat().st_nlink == 1 for name in listed(first))
    assert (await world.with_ready.collect(tree, first)).tree != tree


async def test_two_concurrent_jobs_never_get_the_same_copy(tmp_path: Path) -> None:
    """One takes it; the others make their own checkouts."""
    world = World(tmp_path)
    async with world.keeping() as tree:
        copies = await asyncio.gather(*(world.checked_out(world.with_ready, name, tree) for name in "abcd"))
    assert len({(copy / "docs/lamp.md").stat().st_ino for copy in copies}) == 4
    assert all(listed(copy) == listed(copies[0]) for copy in copies)


async def test_a_job_waits_for_a_copy_being_made(tmp_path: Path) -> None:
    """The first one after the start would only make a second one beside it."""
    world = World(tmp_path, delay=600)
    tree = (await world.with_ready.start(BRANCH)).tree
    task = asyncio.create_task(world.ready.keep(world.base))
    await until(world.is_begun)
    await world.checked_out(world.with_ready, "a", tree)
    assert list(world.place.iterdir()) == []
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_newer_base_replaces_the_older_copy(tmp_path: Path) -> None:
    """So the disk holds one; a job on another tree gets its own."""
    world = World(tmp_path)
    async with world.keeping() as old:
        (world.source / "docs/lamp.md").write_text("# Lamps\n")
        world.committed("Newer")
        new = (await world.with_ready.start(BRANCH)).tree
        copy = await world.checked_out(world.with_ready, "a", new)
        assert (copy / "docs/lamp.md").read_text() == "# Lamps\n"
        await until(lambda: world.is_ready(new))
    assert old != new


async def test_leftovers_of_a_killed_server_are_never_used(tmp_path: Path) -> None:
    """Neither the unfinished copy nor the finished one: after a power loss that may be incomplete."""
    world = World(tmp_path)
    tree = (await world.with_ready.start(BRANCH)).tree
    for name in ("making-x", "taken-x", tree):
        (world.place / name / "copy").mkdir(parents=True)
        (world.place / name / "copy/half.md").write_text("ha")
    world.ready.prepare()
    copy = await world.checked_out(world.with_ready, "a", tree)
    assert list(world.place.iterdir()) == []
    assert "half.md" not in listed(copy)


async def test_a_copy_that_cannot_be_moved_is_checked_out(tmp_path: Path) -> None:
    """A prepared folder without its files is useless."""
    world = World(tmp_path)
    tree = (await world.with_ready.start(BRANCH)).tree
    (world.place / tree).mkdir()
    copy = await world.checked_out(world.with_ready, "a", tree)
    assert listed(copy) == listed(await world.checked_out(world.without, "b", tree))
