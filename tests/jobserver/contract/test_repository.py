"""The repository's files out of the mirror and back: real git, and what a hostile program may leave between."""

import asyncio
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.worlds.jobserver_world import git, make_bare, push_to

from bot.jobapi.models import ChangeKind
from bot.jobserver.errors import GitError, PushRejectedError
from bot.jobserver.repository.foreign_files import remove
from bot.jobserver.repository.git import Git
from bot.jobserver.repository.git_repository import GitRepository, StartingPoint
from bot.jobserver.repository.mirror import Mirror
from bot.jobserver.repository.working_copy import ChangeLimits, Collected
from bot.jobserver.settings import JobServerSettings

FILES = {
    "README.md": "# Lamp\n",
    "docs/start.md": "# Start\n\nOne.\n",
    "docs/guides/one.md": "# One\n",
    "assets/big.psd": "version https://git-lfs.github.com/spec/v1\n",
    ".gitignore": "*.log\nbuild/\n",
    ".gitattributes": "*.psd filter=lfs diff=lfs merge=lfs -text\n",
}
BRANCH = "pagehand/0123456789abcdef"
NO_FILES = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""Git's name of the empty tree."""


class World:
    """A bare repository, a person's clone of it, and ours."""

    def __init__(self, tmp_path: Path) -> None:
        self.bare = make_bare(tmp_path / "docs.git", FILES)
        self.theirs = tmp_path / "theirs"
        git(tmp_path, "clone", "--quiet", str(self.bare), str(self.theirs))
        settings = JobServerSettings(repository=str(self.bare), api_key="planted-key-of-sixteen")
        self.mirror = Mirror(Git.for_settings(settings), tmp_path / "mirror.git")
        self.repository = GitRepository(self.mirror, "main", ChangeLimits(max_files=20, max_file_bytes=1000))
        self.copy = tmp_path / "job" / "copy"

    async def checked_out(self) -> StartingPoint:
        start = await self.repository.start(BRANCH)
        if self.copy.parent.exists():
            shutil.rmtree(self.copy.parent)
        self.copy.mkdir(parents=True)
        await self.repository.working_copy(self.copy).check_out(start.tree)
        return start

    async def collected(self, edit: Callable[[Path], object]) -> Collected:
        start = await self.checked_out()
        edit(self.copy)
        return await self.repository.working_copy(self.copy).collect(start.tree)

    async def changed_paths(self, tree: str) -> set[str]:
        start = await self.repository.start(BRANCH)
        return set(git(self.mirror.directory, "diff-tree", "-r", "--name-only", start.tree, tree).split())

    def commit_of_theirs(self, branch: str, name: str, text: str) -> None:
        push_to(self.bare, branch, {name: text.encode()})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    remove(made.copy)  # pytest cannot remove folders nested this deeply


async def pushed(world: World, name: str, text: str) -> str:
    start = await world.checked_out()
    (world.copy / name).write_text(text)
    found = await world.repository.working_copy(world.copy).collect(start.tree)
    commit = await world.repository.commit(start, found.tree, "Ours\n\nPagehand-Instruction: a/1\n")
    await world.repository.push(commit, BRANCH, start.tip)
    return commit


async def test_a_base_with_a_name_like_a_jobs_branch_is_none(world: World) -> None:
    await pushed(world, "a.md", "A\n")
    assert await world.repository.branches_of_jobs() == {BRANCH: BRANCH.partition("/")[2]}
    limits = ChangeLimits(max_files=20, max_file_bytes=1000)
    assert await GitRepository(world.mirror, BRANCH, limits).branches_of_jobs() == {}


async def test_new_changed_moved_and_deleted_files_are_imported(world: World) -> None:
    def edit(copy: Path) -> None:
        (copy / "docs/new page.md").write_text("New\n")
        (copy / "docs/start.md").rename(copy / "start.md")
        (copy / "README.md").unlink()
        (copy / "README.md").mkdir()
        (copy / "README.md/inner.md").write_text("Inner\n")

    found = await world.collected(edit)
    assert found.left_out == ()
    listed = git(world.mirror.directory, "ls-tree", "-r", "--name-only", found.tree).splitlines()
    assert set(listed) == {".gitattributes", ".gitignore", "README.md/inner.md", "assets/big.psd", "docs/guides/one.md",
                           "docs/new page.md", "start.md"}  # fmt: skip


async def test_an_unchanged_rewritten_or_restored_copy_has_the_same_tree(world: World) -> None:
    def rewrite(copy: Path) -> None:
        for path in list(copy.rglob("*.*")):
            data = path.read_bytes()
            path.unlink()
            path.write_bytes(data)

    start = await world.checked_out()
    assert await world.repository.working_copy(world.copy).collect(start.tree) == Collected(start.tree)
    rewrite(world.copy)
    assert await world.repository.working_copy(world.copy).collect(start.tree) == Collected(start.tree)
    (world.copy / "docs/new.md").write_text("New\n")
    (world.copy / "docs/start.md").unlink()
    assert (await world.repository.working_copy(world.copy).collect(start.tree)).tree != start.tree
    (world.copy / "docs/new.md").unlink()
    (world.copy / "docs/start.md").write_text(FILES["docs/start.md"])
    assert await world.repository.working_copy(world.copy).collect(start.tree) == Collected(start.tree)


async def test_files_with_unusual_names_and_in_closed_folders_are_imported(world: World) -> None:
    names = ("docs/new\npage.md", "-rf", ":(exclude)*", os.fsdecode(b"not-\xff-text.md"), "closed/page.md")

    def edit(copy: Path) -> None:
        (copy / "closed").mkdir()
        for name in names:
            (copy / name).write_text("New\n")
        (copy / "closed").chmod(0)

    found = await world.collected(edit)
    for name in names:
        git(world.mirror.directory, "cat-file", "-e", f"{found.tree}:{name}")  # it fails if there is none


async def test_an_edit_within_the_same_second_and_size_is_detected(world: World) -> None:
    start = await world.checked_out()
    status = (world.copy / "docs/start.md").stat()
    (world.copy / "docs/start.md").write_text("# Start\n\nTwo.\n")
    os.utime(world.copy / "docs/start.md", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (await world.repository.working_copy(world.copy).collect(start.tree)).tree != start.tree


def _nested_repository(copy: Path) -> None:
    (copy / "vendor").mkdir()
    (copy / "vendor/file.md").write_text("theirs")
    git(copy / "vendor", "init", "--quiet")
    git(copy / "vendor", "add", "--all")
    git(copy / "vendor", "commit", "--quiet", "-m", "Theirs")


def _link_in_place_of_a_folder(copy: Path) -> None:
    shutil.rmtree(copy / "docs")
    (copy / "docs").symlink_to("/etc")


def _socket(copy: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(copy / "docs/socket"))


def _large_files(copy: Path) -> None:
    (copy / "docs/huge.md").write_text("x" * 1001)
    (copy / "docs/start.md").write_text("x" * 1001)


def _hidden_repository(copy: Path) -> None:
    (copy / "docs/.GIT").mkdir()
    (copy / "docs/.GIT/config").write_text("[core]\n")
    (copy / "docs/.g\u200cit").write_text("gitdir: /etc")
    (copy / "git~1").write_text("gitdir: /etc")


def _deep_folders(copy: Path) -> None:
    folder = copy / "deep"
    folder.mkdir()
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)


LEFT_OUT: dict[str, tuple[Callable[[Path], object], str]] = {
    "a link out of the tree": (lambda copy: (copy / "docs/x.md").symlink_to("/etc/passwd"), "`docs/x.md` is a link"),
    "a link to another page": (lambda copy: (copy / "docs/same.md").symlink_to("start.md"), "`docs/same.md` is a link"),
    "a link in place of a folder": (_link_in_place_of_a_folder, "`docs` is a link"),
    "a pipe": (lambda copy: os.mkfifo(copy / "docs/pipe.md"), "`docs/pipe.md` is not a plain file"),
    "a socket": (_socket, "`docs/socket` is not a plain file"),
    "a repository in a folder": (_nested_repository, "the folder `vendor` is a git repository of its own"),
    "an ignored file": (lambda copy: (copy / "debug.log").write_text("x"), "`debug.log` is named in .gitignore"),
    "a file of Git LFS": (lambda copy: (copy / "assets/big.psd").write_text("x"), "big.psd` is stored in Git LFS"),
    "folders within folders": (_deep_folders, "a folder in `deep` is nested too deeply"),
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("kind", LEFT_OUT)
async def test_files_that_are_not_pages_are_left_out_with_a_reason(world: World, kind: str) -> None:
    edit, words = LEFT_OUT[kind]

    def and_a_page(copy: Path) -> None:
        edit(copy)
        (copy / "kept.md").write_text("Kept\n")

    found = await world.collected(and_a_page)
    assert await world.changed_paths(found.tree) == {"kept.md"}
    assert words in found.left_out[0]


async def test_disproportionate_files_are_left_out(world: World) -> None:
    found = await world.collected(_large_files)
    assert sorted(found.left_out) == [
        "`docs/huge.md` is larger than 0.001 MB",
        "`docs/start.md` is larger than 0.001 MB",
    ]
    assert await world.changed_paths(found.tree) == set()


async def test_too_many_files_are_left_out_altogether(world: World) -> None:
    found = await world.collected(lambda copy: [(copy / f"{n}.md").write_text("x") for n in range(21)])
    assert await world.changed_paths(found.tree) == set()
    assert found.left_out[0].startswith("21 files were changed, more than the limit of 20 ")


def _with_long_names(folder: Path, count: int) -> None:
    """Writes files whose names have 1.9 kB; of what git lists, 8 MB are read."""
    deepest = folder / "/".join("d" * 240 for _ in range(7))
    deepest.mkdir(parents=True)
    for number in range(count):
        (deepest / f"{number:0240}").touch()


@pytest.mark.full
@pytest.mark.parametrize("count", [pytest.param(4_130, id="with their attributes"), 4_200])
async def test_so_many_files_that_git_cannot_list_them_are_left_out_altogether(world: World, count: int) -> None:
    def edit(copy: Path) -> None:
        _with_long_names(copy / "new", count)
        (copy / "docs/start.md").write_text("Changed\n")

    found = await world.collected(edit)
    assert found.left_out == ("more files were changed than git can list here, so all were left out",)
    assert await world.changed_paths(found.tree) == set()


@pytest.mark.full
async def test_an_ignored_folder_hides_no_change_however_large_it_is(world: World) -> None:
    def edit(copy: Path) -> None:
        _with_long_names(copy / "build", 4_200)
        (copy / "docs/start.md").write_text("Changed\n")

    found = await world.collected(edit)
    assert len(found.left_out) == 4_200
    assert all(words.endswith("` is named in .gitignore") for words in found.left_out)
    assert await world.changed_paths(found.tree) == {"docs/start.md"}


async def test_what_is_ignored_is_what_gitignore_says_after_the_edit_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git's own settings of the machine and of the copy do not count, nor what matches but is in the repository."""
    (tmp_path / ".config/git").mkdir(parents=True)
    (tmp_path / ".config/git/ignore").write_text("*.md\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    world = World(tmp_path)
    push_to(world.bare, "main", {"docs/.gitignore": b"*.tmp\n!kept.tmp\n", "docs/known.md": b"x\n"})

    def edit(copy: Path) -> None:
        (copy / ".git/info").mkdir(parents=True)
        (copy / ".git/info/exclude").write_text("*.md\n")
        (copy / ".gitignore").write_text("docs/known.md\ndocs/guides/\n/new/\n")
        for name in ("docs/known.md", "docs/guides/one.md", "debug.log", "docs/new.md", "docs/kept.tmp"):
            (copy / name).write_text("Changed\n")
        (copy / "new/below").mkdir(parents=True)
        for name in ("docs/a.tmp", "docs/guides/two.md", "new/a.md", "new/below/b.md"):
            (copy / name).write_text("Ignored\n")

    found = await world.collected(edit)
    ignored = ("docs/a.tmp", "docs/guides/two.md", "new/a.md", "new/below/b.md")
    assert set(found.left_out) == {f"`{name}` is named in .gitignore" for name in ignored}
    taken = {".gitignore", "docs/known.md", "docs/guides/one.md", "debug.log", "docs/new.md", "docs/kept.tmp"}
    assert await world.changed_paths(found.tree) == taken


async def test_a_deleted_gitignore_hides_nothing_more(world: World) -> None:
    def edit(copy: Path) -> None:
        (copy / ".gitignore").unlink()
        (copy / "debug.log").write_text("x")

    found = await world.collected(edit)
    assert await world.changed_paths(found.tree) == {".gitignore", "debug.log"}


async def test_nothing_changes_below_a_submodule_or_a_link_and_no_mode_alone(world: World) -> None:
    blob, commit = (git(world.theirs, "rev-parse", name).strip() for name in ("HEAD:README.md", "HEAD"))
    for mode, name, of in (("160000", commit, "module"), ("120000", blob, "link"), ("160000", commit, "docs/module")):
        git(world.theirs, "update-index", "--add", "--cacheinfo", f"{mode},{name},{of}")
    (world.theirs / "program.md").write_text("#!/bin/sh\n")
    git(world.theirs, "add", "program.md")
    git(world.theirs, "commit", "--quiet", "-m", "Submodules, a link and a program")
    git(world.theirs, "push", "--quiet", "origin", "main")

    def edit(copy: Path) -> None:
        (copy / "link").unlink()
        shutil.rmtree(copy / "docs/module")
        (copy / "docs/module").write_text("x")
        for folder in ("module", "link/below"):
            (copy / folder).mkdir(parents=True, exist_ok=True)
            (copy / folder / "new.md").write_text("New\n")
        (copy / "program.md").chmod(0o755)
        (copy / "docs/kept.md").write_text("Kept\n")

    found = await world.collected(edit)
    assert found.left_out == ()
    assert await world.changed_paths(found.tree) == {"docs/kept.md"}


async def test_git_directories_of_any_spelling_are_never_imported(world: World) -> None:
    found = await world.collected(_hidden_repository)
    assert await world.changed_paths(found.tree) == set()


async def test_a_repositorys_symlink_is_exported_as_a_text_file(world: World) -> None:
    (world.theirs / "link.md").symlink_to("README.md")
    git(world.theirs, "add", "--all")
    git(world.theirs, "commit", "--quiet", "-m", "A link")
    git(world.theirs, "push", "--quiet", "origin", "main")
    found = await world.collected(lambda copy: (copy / "link.md").write_text("/etc/passwd"))
    assert await world.changed_paths(found.tree) == set()
    found = await world.collected(lambda copy: (copy / "link.md").unlink())
    assert await world.changed_paths(found.tree) == {"link.md"}


async def test_a_branch_behind_its_base_is_updated_if_it_merges_cleanly(world: World) -> None:
    ours = await pushed(world, "docs/start.md", "Ours\n")
    world.commit_of_theirs("main", "docs/other.md", "Theirs\n")
    start = await world.checked_out()
    assert start.note == "main was merged into the branch"
    assert (world.copy / "docs/other.md").read_text() == "Theirs\n"
    commit = await world.repository.commit(start, start.tree, "Next\n")
    await world.repository.push(commit, BRANCH, start.tip)
    assert git(world.bare, "merge-base", "--is-ancestor", ours, BRANCH) == ""
    assert git(world.bare, "merge-base", "--is-ancestor", "main", BRANCH) == ""


async def test_a_branch_that_conflicts_with_its_base_stays_as_it_is(world: World) -> None:
    ours = await pushed(world, "docs/start.md", "Ours\n")
    world.commit_of_theirs("main", "docs/start.md", "Theirs\n")
    start = await world.repository.start(BRANCH)
    assert start.parents == (ours,)
    assert start.note == "the branch is behind main, and both changed `docs/start.md`, so it was not updated"


async def test_a_merged_or_deleted_branch_restarts_at_the_base(world: World) -> None:
    await pushed(world, "docs/start.md", "Ours\n")
    git(world.theirs, "fetch", "--quiet")
    git(world.theirs, "merge", "--quiet", "--no-ff", "-m", "Merge", f"origin/{BRANCH}")
    git(world.theirs, "push", "--quiet", "origin", "main")
    start = await world.repository.start(BRANCH)
    assert start.parents == (start.base,)
    git(world.bare, "update-ref", "-d", f"refs/heads/{BRANCH}")
    start = await world.repository.start(BRANCH)
    assert start.parents == (start.base,)


def point(world: World, commit: str) -> None:
    git(world.bare, "update-ref", f"refs/heads/{BRANCH}", commit)


def rewrite(world: World) -> None:
    point(world, git(world.bare, "commit-tree", "-p", "main", "-m", "Theirs", "main^{tree}").strip())


MOVED: dict[str, Callable[[World], object]] = {
    "rewound": lambda world: point(world, f"{BRANCH}^"),
    "rewritten": rewrite,
    "continued": lambda world: world.commit_of_theirs(BRANCH, "theirs.md", "Theirs\n"),
    "deleted": lambda world: git(world.bare, "update-ref", "-d", f"refs/heads/{BRANCH}"),
}


@pytest.mark.parametrize("how", MOVED)
async def test_a_branch_that_is_not_as_it_was_read_is_not_pushed_to(world: World, how: str) -> None:
    await pushed(world, "a.md", "A\n")
    await pushed(world, "b.md", "B\n")
    start = await world.repository.start(BRANCH)
    commit = await world.repository.commit(start, start.tree, "Ours\n")
    MOVED[how](world)
    before = git(world.bare, "for-each-ref")
    with pytest.raises(PushRejectedError):
        await world.repository.push(commit, BRANCH, start.tip)
    assert git(world.bare, "for-each-ref") == before


async def test_a_branch_that_somebody_made_meanwhile_is_not_pushed_to(world: World) -> None:
    start = await world.repository.start(BRANCH)
    commit = await world.repository.commit(start, start.tree, "Ours\n")
    point(world, "main")
    with pytest.raises(PushRejectedError):
        await world.repository.push(commit, BRANCH, start.tip)
    await world.repository.push(commit, BRANCH, (await world.repository.start(BRANCH)).tip)
    await world.repository.push(commit, BRANCH, start.tip)  # as after an answer that was lost


async def test_what_is_on_a_branch_is_not_overwritten_even_if_it_is_as_expected(world: World) -> None:
    ours = await pushed(world, "a.md", "A\n")
    start = await world.repository.start(BRANCH)
    other = await world.repository.commit(replace(start, parents=(start.base,)), start.tree, "Without ours\n")
    with pytest.raises(PushRejectedError):
        await world.repository.push(other, BRANCH, start.tip)
    assert git(world.bare, "rev-parse", BRANCH).strip() == ours


async def test_deleting_a_branch_is_idempotent(world: World) -> None:
    await pushed(world, "docs/start.md", "Ours\n")
    await world.repository.delete_branch(BRANCH)
    await world.repository.delete_branch(BRANCH)
    assert BRANCH not in git(world.bare, "for-each-ref")
    assert await world.repository.mirror.revision(BRANCH) is None


async def test_changes_are_those_of_the_pull_request(world: World) -> None:
    start = await world.checked_out()
    (world.copy / "docs/start.md").write_text("# Start\n\nTwo.\nThree.\n")
    (world.copy / "README.md").rename(world.copy / "readme.md")
    (world.copy / "docs/picture.png").write_bytes(b"\x89PNG\0\1")
    (world.copy / "docs/guides/one.md").unlink()
    tree = (await world.repository.working_copy(world.copy).collect(start.tree)).tree
    commit = await world.repository.commit(start, tree, "Ours\n")
    world.commit_of_theirs("main", "docs/other.md", "Theirs\n")  # not ours, so it is not included
    changes = await world.repository.changes((await world.repository.start(BRANCH)).base, commit)
    assert [(file.path, file.kind, file.added, file.removed) for file in changes.files] == [
        ("docs/guides/one.md", ChangeKind.DELETED, 0, 1),
        ("docs/picture.png", ChangeKind.ADDED, None, None),
        ("docs/start.md", ChangeKind.CHANGED, 2, 1),
        ("readme.md", ChangeKind.RENAMED, 0, 0),
    ]
    assert (changes.file_count, changes.added, changes.removed) == (4, 2, 2)


async def test_the_changes_of_a_branch_without_a_common_ancestor_are_all_that_differs(world: World) -> None:
    await world.repository.start(BRANCH)
    orphan = git(world.mirror.directory, "commit-tree", "-m", "Theirs", "main^{tree}").strip()
    empty = git(world.mirror.directory, "commit-tree", "-m", "Theirs", NO_FILES).strip()
    assert (await world.repository.changes("main", orphan)).files == ()
    assert {file.path for file in (await world.repository.changes("main", empty)).files} == FILES.keys()


async def test_a_snapshot_is_written_as_plain_files(world: World, tmp_path: Path) -> None:
    """Former symlinks lead nowhere, and the folder is no repository."""
    (world.theirs / "link.md").symlink_to("/etc/passwd")
    git(world.theirs, "add", "--all")
    git(world.theirs, "commit", "--quiet", "-m", "A link")
    git(world.theirs, "push", "--quiet", "origin", "main")
    world.commit_of_theirs("main", "docs/two.md", "# Two\n")
    start = await world.checked_out()
    folder = tmp_path / "written"
    folder.mkdir()
    await asyncio.to_thread(world.repository.snapshot(start.tree).write_files, folder)
    assert (folder / "docs/two.md").read_text() == "# Two\n"
    assert (folder / "link.md").read_text() == "/etc/passwd"
    assert not (folder / "link.md").is_symlink()
    assert {path.name for path in folder.iterdir()} == {path.name for path in world.copy.iterdir()}


@pytest.mark.full
async def test_the_mirrors_objects_are_shared(world: World) -> None:
    """A large file that comes to another branch is not fetched, and a job makes no second copy of the repository."""
    world.commit_of_theirs("main", "ok.md", "ok\n")
    await world.repository.start(BRANCH)
    git(world.theirs, "checkout", "--quiet", "-b", "large")
    (world.theirs / "large.bin").write_bytes(os.urandom(3_000_000))
    git(world.theirs, "add", "--all")
    git(world.theirs, "commit", "--quiet", "-m", "Large")
    git(world.theirs, "push", "--quiet", "origin", "large")
    await pushed(world, "docs/start.md", "Ours\n")
    in_mirror = sum(path.stat().st_size for path in world.mirror.directory.rglob("*") if path.is_file())
    assert in_mirror < 1_000_000
    assert {path.name for path in world.copy.parent.iterdir()} == {"copy", "copy.index"}


@pytest.mark.full
async def test_packing_waits_until_worthwhile_and_keeps_referenced_objects(world: World) -> None:
    commit = await pushed(world, "docs/start.md", "Ours\n")
    assert not await world.repository.mirror.pack()
    await asyncio.to_thread(many_objects, world.mirror.directory)
    assert await world.repository.mirror.pack()
    assert not await world.repository.mirror.pack()
    assert await world.repository.with_trailer(BRANCH, "Pagehand-Instruction", "a/1") == commit


def many_objects(mirror: Path) -> None:
    names = [mirror.parent / f"object{number}" for number in range(2_100)]
    for number, name in enumerate(names):
        name.write_text(f"{number}")
    git(mirror, "hash-object", "-w", *map(str, names))


async def test_a_packed_repository_is_mirrored_and_pushed_to(world: World) -> None:
    """Hosts pack: objects with bitmaps and a commit graph, and branch names; before and after the first fetch."""
    for number in range(2):
        world.commit_of_theirs("main", f"docs/page{number}.md", f"# Page {number}\n")
        git(world.bare, "config", "repack.writeBitmaps", "true")
        git(world.bare, "gc", "--quiet", "--prune=now")
        git(world.bare, "commit-graph", "write", "--reachable")
        assert "count: 0\n" in git(world.bare, "count-objects", "-v")
        assert not any((world.bare / "refs" / "heads").iterdir())
        commit = await pushed(world, "docs/new.md", f"# New {number}\n")
        assert git(world.bare, "rev-parse", BRANCH).strip() == commit
        assert git(world.bare, "show", f"{BRANCH}:docs/page{number}.md") == f"# Page {number}\n"
    git(world.mirror.directory, "fsck", "--no-progress")  # it fails if anything is missing


async def test_an_unreachable_repository_is_reported(world: World) -> None:
    shutil.rmtree(world.bare)
    with pytest.raises(GitError):
        await world.repository.start(BRANCH)
