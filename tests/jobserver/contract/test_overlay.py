"""Copies whose files stay in git: the built-in editor makes the same changes as to files on disk."""

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import pytest
from support.worlds.jobserver_world import KEY, git, make_repository

from bot.jobserver.editors.builtin.files import LowerFiles, WorkingFiles
from bot.jobserver.editors.builtin.worker import EditorAnswer, answer
from bot.jobserver.repository.allowed_paths import AllowedPaths
from bot.jobserver.repository.git import Git
from bot.jobserver.repository.git_repository import GitRepository, Overlays
from bot.jobserver.repository.mirror import BaseBranch, Mirror
from bot.jobserver.repository.snapshot import lower_tree
from bot.jobserver.repository.working_copy import ChangeLimits, Collected
from bot.jobserver.settings import JobServerSettings

FILES = {
    "README.md": "# Lamps\n\nSee [Lamp](docs/lamp.md). The colour of recieved light.\n",
    "mkdocs.yml": "site_name: Lamps\nnav:\n  - Lamp: lamp.md\n  - Shade: shade.md\n",
    "docs/lamp.md": "# Lamp\n\nIts colour. Version 1.2.0.\n",
    "docs/shade.md": "# Shade\n\nA colour besides [the lamp](lamp.md#lamp).\n",
    "docs/windows.txt": "A colour\nTwo\n",
    "docs/.gitignore": "secret*.md\n",
    "docs/images/lamp.png": "a picture",
    "node_modules/lamp/README.md": "# A colour of others\n",
    "notes/ünï çode.md": "# Notes\n\nThe colour of É.\n",
    "tools/colour.sh": "#!/bin/sh\n",
    ".gitattributes": "*.txt text eol=crlf\n",
}
PROMPTS = (
    'Replace "colour" with "color"',
    'Replace "colour" with "color" in docs/shade.md',
    "Fix the spelling",
    "Add a page called Switch with the text: A lamp.",
    "Add a page called Secret with the text: A lamp.",
    "Rename the page Lamp to Light",
    'Add a section "Bulbs" to the page Lamp with the text: They glow.',
    "What can you do?",
    "Make it shorter",
)
BRANCH = "pagehand/0123456789abcdef"


class World:
    """A repository, and two ways to its files."""

    def __init__(self, tmp_path: Path, paths: str = "**") -> None:
        self.tmp_path, self.opened, self._tree = tmp_path, list[LowerFiles](), ""
        source = make_repository(tmp_path / "docs", FILES)
        (source / "docs/link.md").symlink_to("lamp.md")
        (source / "tools/colour.sh").chmod(0o755)
        git(source, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendor")
        git(source, "add", "docs", "tools")
        git(source, "commit", "--quiet", "-m", "More")
        settings = JobServerSettings(repository=str(source), api_key=KEY, paths=paths)
        self.mirror, base = Mirror(Git.for_settings(settings), tmp_path / "mirror.git"), BaseBranch("main")
        limits = ChangeLimits(max_files=20, max_file_bytes=1000, allowed=AllowedPaths(settings.paths))
        self.on_disk = GitRepository(self.mirror, base, limits)
        self.overlaid = GitRepository(self.mirror, base, limits, Overlays())

    async def tree(self) -> str:
        self._tree = self._tree or (await self.on_disk.start(BRANCH)).tree
        return self._tree

    async def copy(self, repository: GitRepository, name: str) -> Path:
        copy = self.tmp_path / name / "copy"
        copy.mkdir(parents=True)
        await repository.check_out(await self.tree(), copy)
        return copy

    def files(self, copy: Path) -> WorkingFiles:
        lower = lower_tree(copy)
        if lower is None:
            return WorkingFiles(copy)
        self.opened.append(LowerFiles(self.mirror.reader(), lower.tree, lower.note))
        return WorkingFiles(copy, self.opened[-1])

    async def edited(self, repository: GitRepository, prompt: str, name: str) -> tuple[EditorAnswer, Collected]:
        copy = await self.copy(repository, name)
        answered = answer(prompt, self.files(copy))
        return answered, await repository.collect(await self.tree(), copy)


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(tmp_path, getattr(request, "param", "**"))
    yield made
    for lower in made.opened:
        lower.close()


@pytest.mark.parametrize(("world", "prompts"), [("**", PROMPTS), ("docs/**", PROMPTS[:2])], indirect=["world"])
async def test_an_edit_in_the_overlay_equals_one_on_disk(world: World, prompts: Sequence[str]) -> None:
    """The same answer and tree, with symlinks, a submodule, line endings, ignored files and held-out ones."""
    changed = 0
    for number, prompt in enumerate(prompts):
        expected = await world.edited(world.on_disk, prompt, f"disk{number}")
        assert await world.edited(world.overlaid, prompt, f"overlay{number}") == expected, prompt
        changed += expected[1].tree != await world.tree()
    assert changed >= 0.6 * len(prompts)


async def test_only_changed_files_are_written(world: World) -> None:
    """No other file of a large repository is on disk."""
    copy = await world.copy(world.overlaid, "job")
    assert list(copy.iterdir()) == []
    answer("Rename the page Lamp to Light", world.files(copy))
    assert not (copy / "tools").exists()
    assert not (copy / "docs" / "lamp.md").exists()


@pytest.mark.parametrize(
    "path", ["docs/lamp.md", "docs/link.md", "docs", "vendor", "README.md/new.md", "docs/link.md/new.md"]
)
async def test_existing_git_entries_cannot_be_replaced(world: World, path: str) -> None:
    """A file, a symlink, a folder, a submodule; and no file becomes a folder."""
    copy = await world.copy(world.overlaid, "job")
    with pytest.raises(OSError, match=r"there already|no folder"):
        world.files(copy).create(PurePosixPath(path), "new")
    assert (await world.overlaid.collect(await world.tree(), copy)).tree == await world.tree()


async def test_a_file_moved_away_and_back_is_unchanged(world: World) -> None:
    """Also with other contents."""
    copy = await world.copy(world.overlaid, "job")
    files, old, new = world.files(copy), PurePosixPath("docs/lamp.md"), PurePosixPath("docs/light.md")
    files.move(old, new, "# Light\n")
    assert old not in files.paths()
    files.move(new, old, "# Lamp, again\n")
    tree = (await world.overlaid.collect(await world.tree(), copy)).tree
    changed = git(world.mirror.directory, "diff-tree", "-r", "--name-status", await world.tree(), tree)
    assert changed == "M\tdocs/lamp.md\n"


async def test_partial_work_is_restored_among_all_files(world: World) -> None:
    """Then they are on disk."""
    start = await world.overlaid.start(BRANCH)
    copy = await world.copy(world.overlaid, "first")
    answer("Rename the page Lamp to Light", world.files(copy))
    collected = await world.overlaid.collect(start.tree, copy)
    partial = await world.overlaid.commit(start, collected.tree, "Partial\n")
    again = await world.copy(world.overlaid, "again")
    assert await world.overlaid.put_back(partial, start.tree, again)
    assert lower_tree(again) is None
    assert (again / "docs/light.md").is_file()
    assert (await world.overlaid.collect(start.tree, again)).tree == collected.tree
