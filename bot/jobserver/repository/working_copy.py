"""Checks out files for an editor and takes its changes back, without giving it access to a git directory. Changes that
the job may not make are held out, with others that depend on them.
"""

import asyncio
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from bot.jobserver.errors import OutputTooLongError
from bot.jobserver.repository.allowed_paths import AllowedPaths
from bot.jobserver.repository.foreign_files import RemovedFiles, is_git_directory, remove, sweep
from bot.jobserver.repository.git import printable
from bot.jobserver.repository.listings import GitFileMode, TreeListing
from bot.jobserver.repository.mirror import Mirror

_LISTED_OF_A_FOLDER = 3
NOT_ALLOWED = "may not be changed here (PATHS)"
PACKED = "is a packed file, in which keys cannot be searched for: commit it yourself"
_EXECUTABLE = 0o111
_BEGINNING = 262
_BEGINS_PACKED = re.compile(
    rb"PK(?:\x03\x04|\x05\x06|\x07\x08)|\x1f[\x8b\x9d\xa0]|BZh[1-9](?:1AY&SY|\x17rE8P\x90)|\xfd7zXZ\x00|\]\x00\x00|LZIP\x01"
    rb"|\x28\xb5\x2f\xfd|\x04\x22M\x18|7z\xbc\xaf\x27\x1c|Rar!\x1a\x07|MSCF\x00|!<arch>\n|.{257}ustar",
    re.DOTALL,
)
"""zip (also docx, epub, jar), compress, gzip, bzip2, xz, lzma, lzip, zstd, lz4, 7z, rar, cab, deb, tar."""


def not_allowed(
    changed: Collection[PurePosixPath], before: Collection[PurePosixPath], copy: Path, allowed: AllowedPaths
) -> list[PurePosixPath]:
    """Returns the paths that the patterns do not allow. Blocks while it reads the start of new files."""

    def is_allowed(path: PurePosixPath) -> bool:
        is_new_program = path not in before and allowed.allows(path) and _beginning(copy / path, 2) == b"#!"
        return allowed.allows(path, is_program=is_new_program)

    return [path for path in changed if not is_allowed(path)]


def packed(changed: Collection[PurePosixPath], copy: Path) -> list[PurePosixPath]:
    """Returns the paths whose files are packed, by their first bytes. Blocks."""
    return [path for path in changed if _BEGINS_PACKED.match(_beginning(copy / path, _BEGINNING))]


def held_out(
    refused: Mapping[PurePosixPath, str],
    changed: Collection[PurePosixPath],
    blobs: Mapping[PurePosixPath, str],
    hashes: Mapping[PurePosixPath, str],
) -> dict[PurePosixPath, str]:
    """Returns the refused paths with their reasons, and those that have to stay unchanged with them.

    A file that was moved to a refused path stays where it was, and nothing replaces a refused path. `blobs` are the
    blobs of all files before the change; `hashes` are those of refused new files.
    """
    reasons = dict(refused)
    moved, refused_before = set(hashes.values()), {path for path in refused if path in blobs}
    folders = {folder for path in refused_before for folder in path.parents}
    for path in changed:
        if path in reasons:
            continue
        if blobs.get(path) in moved:
            reasons[path] = "stays, since where it was moved to may not be changed here (PATHS)"
        elif path in folders or not refused_before.isdisjoint(path.parents):
            reasons[path] = "is in the place of something that may not be changed here (PATHS)"
    return reasons


def settle_modes(taken: Collection[PurePosixPath], executable: Collection[PurePosixPath], copy: Path) -> None:
    """Removes the executable bit from files that are not programs and were not executable before. Blocks."""
    for path in taken:
        file = copy / path
        if path in executable or not file.is_file():
            continue
        mode = file.stat().st_mode
        if mode & _EXECUTABLE and _beginning(file, 2) != b"#!":
            file.chmod(mode & ~_EXECUTABLE)


def _beginning(file: Path, length: int) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(length)
    except OSError:
        return b""


def _held_out_in_words(reasons: Mapping[PurePosixPath, str]) -> list[str]:
    """Returns a line for each; if there are many in a folder, one line for the folder."""
    together: dict[tuple[PurePosixPath, str], list[PurePosixPath]] = {}
    for path, reason in reasons.items():
        together.setdefault((path.parent, reason), []).append(path)
    lines = []
    for (folder, reason), paths in together.items():
        if len(paths) > _LISTED_OF_A_FOLDER:
            lines.append(f"{len(paths):,} files in `{folder}`: each {reason}")
        else:
            lines += [f"`{path}` {reason}" for path in paths]
    return lines


@dataclass(frozen=True)
class ChangeLimits:
    """Limits for one instruction: how many files it may change, how large each may be, and which."""

    max_files: int
    max_file_bytes: int
    allowed: AllowedPaths = AllowedPaths()  # noqa: RUF009 - immutable


@dataclass(frozen=True)
class Collected:
    """The tree of what an editor left, and what was left out and why."""

    tree: str
    left_out: tuple[str, ...] = ()


class WorkingCopy:
    """A directory with the files of one tree; git's index is a file beside the directory."""

    def __init__(self, mirror: Mirror, directory: Path, limits: ChangeLimits) -> None:
        self._mirror = mirror
        self._directory = directory
        self._limits = limits
        self._index = directory.with_name(f"{directory.name}.index")
        self._place = mirror.place(directory, self._index)

    async def check_out(self, tree: str) -> None:
        """Writes the tree's files into the directory, which is empty."""
        await asyncio.to_thread(self._index.unlink, missing_ok=True)
        await self._run("read-tree", "-u", "--reset", tree)

    async def change_to(self, tree: str) -> None:
        """Changes the files to those of another tree, as an editor would. Call it after `check_out`."""
        await self._run("read-tree", "-u", "--reset", tree)

    async def collect(self, tree: str) -> Collected:
        """Takes back the changes since `tree` was checked out; returns the same tree if there are none.

        Raises:
            GitError: git cannot read the files.
        """
        await asyncio.to_thread(self._index.unlink, missing_ok=True)
        await self._run("read-tree", tree)
        before = await self._mirror.listing(tree)
        removed = await asyncio.to_thread(lambda: sweep(self._directory, before.folders))
        try:
            changed, ignored = await self._changed(before, removed)
            held = await self._hold_out([path for path in changed if path not in ignored], before)
            others = [path for path in changed if path not in held]
            taken, left_out = await self._sort_out(others, before, removed, ignored)
        except OutputTooLongError:
            return Collected(tree, ("more files were changed than git can list here, so all were left out",))
        if len(taken) > self._limits.max_files:
            limit = f"the limit of {self._limits.max_files:,} per instruction"
            return Collected(tree, (f"{len(taken):,} files were changed, more than {limit}, so all were left out",))
        await asyncio.to_thread(settle_modes, taken, before.of_mode(GitFileMode.EXECUTABLE), self._directory)
        await self._run("update-index", "-z", "--add", "--remove", "--replace", "--stdin", stdin=_joined(taken))
        words = map(printable, (*_held_out_in_words(held), *removed.descriptions, *left_out))
        return Collected((await self._run("write-tree")).strip(), tuple(words))

    async def _changed(
        self, before: TreeListing, removed: RemovedFiles
    ) -> tuple[list[PurePosixPath], set[PurePosixPath]]:
        """Returns the added, changed and deleted paths, without those that the editor may not change; and the new files
        that match a .gitignore.
        """
        fixed, links = before.of_mode(GitFileMode.SUBMODULE), before.of_mode(GitFileMode.LINK)
        closed = fixed | links
        # Contents are compared, since the index has no times yet. What is new and not listed is ignored.
        options = ("-z", "--modified", "--others", "--exclude-standard")
        listed = dict.fromkeys(_paths(await self._run("-c", "core.fileMode=false", "ls-files", *options)))
        there = await asyncio.to_thread(lambda: list(_files_in(self._directory)))
        new = [path for path in there if path not in before.entries]
        changed = [
            path
            for path in (*(path for path in listed if path in before.entries), *new)
            if not removed.covers(path)
            and path not in fixed
            and not closed.intersection(path.parents)
            and not (path in links and (self._directory / path).exists())  # a link is a small text file there
        ]
        return changed, {path for path in new if path not in listed}

    async def _hashes(self, paths: Sequence[PurePosixPath]) -> dict[PurePosixPath, str]:
        """Returns the blob ids of files, except those with a line break in their names."""
        one_line = [path for path in paths if "\n" not in str(path)]
        lines = "".join(f"{path}\n" for path in one_line).encode(errors="surrogateescape")
        output = await self._run("hash-object", "--stdin-paths", stdin=lines) if one_line else ""
        return dict(zip(one_line, output.split(), strict=True))

    async def _hold_out(self, changed: Collection[PurePosixPath], before: TreeListing) -> dict[PurePosixPath, str]:
        """Finds changes that are not allowed and reverts them in the copy, so that checks see what is proposed."""
        blobs, allowed = before.blobs, self._limits.allowed
        found = await asyncio.to_thread(not_allowed, changed, blobs.keys(), self._directory, allowed)
        refused = dict.fromkeys(found, NOT_ALLOWED)
        new = [path for path in refused if path not in blobs]
        others = [path for path in changed if path not in refused]
        found = await asyncio.to_thread(packed, others, self._directory)
        hashes, known = await self._hashes(found[: self._limits.max_files]), set(blobs.values())
        refused |= {path: PACKED for path in found if hashes.get(path) not in known}  # not there before
        held = held_out(refused, changed, blobs, await self._hashes(new[: self._limits.max_files]))
        if held:
            for path in (path for path in held if path not in blobs):
                await asyncio.to_thread(remove, self._directory / path)
            restored = _joined(path for path in held if path in blobs)
            await self._run("checkout-index", "--force", "-z", "--stdin", stdin=restored)
        return held

    async def _sort_out(
        self,
        changed: list[PurePosixPath],
        before: TreeListing,
        removed: RemovedFiles,
        ignored: set[PurePosixPath],
    ) -> tuple[list[PurePosixPath], list[str]]:
        """Returns the changes that are taken, and messages about the others."""
        large_files = await self._kept_by_lfs([path for path in changed if path not in ignored], before)
        taken, words = [], []
        for path in changed:
            if reason := self._why_not(path, ignored=ignored, large_files=large_files):
                words.append(f"`{path}` {reason}")
                removed.paths.add(path)
            else:
                taken.append(path)
        return taken, words

    def _why_not(
        self, path: PurePosixPath, *, ignored: set[PurePosixPath], large_files: set[PurePosixPath]
    ) -> str | None:
        if path in ignored:
            return "is named in .gitignore"
        if path in large_files:
            return "is stored in Git LFS, to which this server uploads nothing"
        if any(is_git_directory(part) for part in path.parts):
            return "has a name that git does not take"
        file, limit = self._directory / path, self._limits.max_file_bytes
        is_too_large = file.is_file() and file.stat().st_size > limit
        return f"is larger than {limit / 1e6:g} MB" if is_too_large else None

    async def _kept_by_lfs(self, paths: list[PurePosixPath], before: TreeListing) -> set[PurePosixPath]:
        # Uses the attributes of the repository, not those that the editor left.
        if not any(path.name == ".gitattributes" for path in before.entries):
            return set()
        output = await self._run("check-attr", "--cached", "-z", "--stdin", "filter", stdin=_joined(paths))
        fields = output.split("\0")
        return {PurePosixPath(path) for path, _, value in zip(*[iter(fields)] * 3, strict=False) if value == "lfs"}

    async def _run(self, *arguments: str, stdin: bytes = b"") -> str:
        return await self._mirror.git.run(self._directory, *arguments, stdin=stdin, place=self._place)


def _files_in(directory: Path) -> Iterator[PurePosixPath]:
    for folder, _, names in os.walk(directory):
        inside = PurePosixPath(Path(folder).relative_to(directory).as_posix())
        yield from (inside / name for name in names)


def _paths(output: str) -> list[PurePosixPath]:
    return [PurePosixPath(name) for name in output.split("\0") if name]


def _joined(paths: Iterable[PurePosixPath | str]) -> bytes:
    return "\0".join(map(str, paths)).encode(errors="surrogateescape")
