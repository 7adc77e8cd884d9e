"""A bare clone of the repository that all jobs of a project share."""

import asyncio
import logging
import tempfile
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Literal

from bot.jobserver.errors import GitError, NoSuchBranchError
from bot.jobserver.repository.credentials import GitResult
from bot.jobserver.repository.git import IS_SHALLOW, Git, GitReader
from bot.jobserver.repository.listings import LIST_TREE, ChangedFile, TreeListing, parse_files, parse_listing
from bot.jobserver.settings import PREFIX

logger = logging.getLogger(__name__)
_MOST_LOOSE = 2_000
"""The limit for loose objects; that for packs is _MOST_PACKS. A job adds about ten objects or one pack."""
_MOST_PACKS = 20
# Names the heading above a change instead of any line; git supports these two itself.
# No file is converted on its way out or in: git fails where an attribute, such as one that an agent wrote, is wrong.
_ATTRIBUTES = "*.md diff=markdown\n*.mdx diff=markdown\n*.html diff=html\n* !working-tree-encoding\n"
# Newer versions of git read attributes from the branch of a bare repository, but its authors must not decide what is
# shown: those of the mirror do.
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
DIFF = (
    "-c", "core.bigFileThreshold=20m",  # larger files are not compared
    "-c", f"attr.tree={_EMPTY_TREE}",
    "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short",
    "--ignore-submodules=none", "--no-relative", "--diff-algorithm=myers", "--find-renames",
)  # fmt: skip
_PAUSE_S = 60.0
_CONFLICT = 1
"""The exit code of `git merge-tree` when both sides changed the same lines."""


@dataclass(frozen=True)
class Tip:
    """A branch's newest commit, and the tree of its files."""

    commit: str
    tree: str


@dataclass(frozen=True)
class Merge:
    """The tree of a merge; `conflicts` are the files in which both sides changed the same lines."""

    tree: str
    conflicts: tuple[str, ...] = ()


class Mirror:
    """The bare repository in `directory`; only one operation at a time that has this lock changes its branches."""

    def __init__(self, git: Git, directory: Path, lock: asyncio.Lock | None = None) -> None:
        self.git = git
        self.directory = directory
        self._lock = lock or asyncio.Lock()
        self._has_attributes = False

    async def fetch(self, branch: str, *more: str) -> Mapping[str, Tip]:
        """Fetches branches and returns their tips; the first must exist, those in `more` may be missing.

        Raises:
            NoSuchBranchError: the repository has no such branch.
            GitError: the repository is unreachable or a shallow clone.
        """
        async with self._lock:
            await self._ensure_made(branch)
            # git accepts a pattern that matches nothing, so the branch that must exist is named in full.
            refspecs = [_refspec(branch), *(_refspec(f"{name}*") for name in more)]
            try:
                await self.run(
                    "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--prune",
                    "--", self.git.address, *refspecs,
                )  # fmt: skip
            except GitError as error:
                if "couldn't find remote ref" in str(error):
                    raise NoSuchBranchError(
                        f"the branch {branch} is not in the repository: if it was renamed, start the job server again, "
                        f"with another {PREFIX}BASE_BRANCH if that is set"
                    ) from None
                raise
        tips = await self.tips(branch, *more)
        if branch not in tips:  # it exists, but git fetched nothing and reported no error
            raise GitError(IS_SHALLOW)
        return tips

    def reader(self, directory: Path | None = None, place: Mapping[str, str] | None = None) -> GitReader:
        """Returns git for blocking code, in the mirror or in a directory whose `place` locates the mirror."""
        command = self.git.command(directory or self.directory, (), b"", place or {})
        return GitReader(command.arguments, command.directory, command.environment)

    def place(self, folder: Path, index: Path) -> Mapping[str, str]:
        """Returns the variables with which git in a folder works on its files, with an index of their own."""
        return {"GIT_DIR": str(self.directory), "GIT_WORK_TREE": str(folder), "GIT_INDEX_FILE": str(index)}

    async def listing(self, tree: str) -> TreeListing:
        """Returns the files of a tree."""
        return await asyncio.to_thread(parse_listing, await self.run(*LIST_TREE, tree))

    async def changed_files(self, *ends: str) -> tuple[ChangedFile, ...]:
        """Returns the files that differ between two commits, or in a range `a...b` since they parted; of a great many
        only the first, as the list ends at 8 MB.

        Raises:
            GitError: they cannot be read.
        """
        compared = await self.try_run(*DIFF, "--raw", "--numstat", "-z", "--no-abbrev", *ends, "--")
        if compared.exit_code:
            raise GitError(f"the change cannot be read: {compared.errors[-300:]}")
        return parse_files(compared.output)

    async def tips(self, *branches: str) -> Mapping[str, Tip]:
        """Returns the tips of branches as of the last fetch or push; nothing for those that are not known."""
        names = {f"refs/heads/{branch}": branch for branch in branches}
        listed = await self.run("for-each-ref", "--format=%(refname) %(objectname) %(tree)", *names)
        found = (line.split(" ") for line in listed.splitlines())
        return {names[name]: Tip(commit, tree) for name, commit, tree in found if name in names}

    async def revision(self, branch: str) -> str | None:
        """Returns a branch's newest commit as of the last fetch or push."""
        found = await self.try_run("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")
        return found.output.strip() or None

    async def set_branch(self, branch: str, commit: str | None) -> None:
        """Records that a branch was pushed, or deleted if there is no commit."""
        async with self._lock:
            target = (commit,) if commit else ()
            await self.run("update-ref", *(() if commit else ("-d",)), f"refs/heads/{branch}", *target)

    async def names(self, prefix: str, form: str = "refname") -> list[str]:
        """Returns the references that begin with a prefix; none if there is no mirror yet."""
        made = self.directory.exists()
        return (await self.run("for-each-ref", f"--format=%({form})", prefix)).split() if made else []

    async def forget(self, prefix: str, kept: Callable[[], Awaitable[Collection[str]]]) -> None:
        """Deletes references that begin with a prefix, but those that `kept` returns; it is asked after a look."""
        listed = await self.names(prefix)
        names = await kept() if listed else ()
        for name in listed:
            if name not in names:
                await self.run("update-ref", "-d", name)

    async def tree_of(self, revision: str) -> str:
        return (await self.run("rev-parse", "--verify", "--end-of-options", f"{revision}^{{tree}}")).strip()

    async def merge_base(self, first: str, second: str) -> str:
        """Returns the common ancestor of two commits; empty if there is none."""
        return (await self.try_run("merge-base", first, second)).output.strip()

    async def merge(self, first: str, second: str) -> Merge:
        """Merges two commits into a tree. Raises GitError."""
        merged = await self.try_run("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", first, second)
        tree, *files = merged.output.strip("\0\n").split("\0")
        conflicts = tuple(filter(None, files)) if merged.exit_code == _CONFLICT else ()
        if merged.exit_code and not conflicts:
            raise GitError(f"git merge-tree: {' '.join(merged.errors.split())[-300:]}")
        return Merge(tree, conflicts)

    async def commit(self, parents: Sequence[str], tree: str, message: str) -> str:
        """Commits a tree and returns the commit's id."""
        options = [part for parent in parents for part in ("-p", parent)]
        return (await self.run("commit-tree", *options, "-F", "-", tree, stdin=message.encode())).strip()

    async def pack(self) -> bool:
        """Packs loose objects and small packs if there are many, and drops objects unreferenced for two weeks.

        Returns whether it did. Jobs can run meanwhile, since the objects that they create are new.
        """
        if not self.directory.exists():
            return False
        counted = await self.run("count-objects", "-v")
        counts = dict(line.split(": ", 1) for line in counted.splitlines() if ": " in line)
        if int(counts.get("count", 0)) <= _MOST_LOOSE and int(counts.get("packs", 0)) <= _MOST_PACKS:
            return False
        await self.run("gc", "--quiet", "--cruft", "--prune=2.weeks.ago")  # cruft: unreferenced objects are packed, too
        return True

    async def run(self, *arguments: str, stdin: bytes = b"") -> str:
        return await self.git.run(self.directory, *arguments, stdin=stdin)

    async def try_run(self, *arguments: str) -> GitResult:
        return await self.git.try_run(self.directory, *arguments)

    async def _ensure_made(self, branch: str) -> None:
        if not self.directory.exists():
            with tempfile.TemporaryDirectory(dir=self.directory.parent, prefix="mirror-") as scratch:
                made = Path(scratch) / "mirror.git"
                await self._make(made, branch)
                made.rename(self.directory)
        if not self._has_attributes:
            await asyncio.to_thread(self._write_attributes)
            self._has_attributes = True

    async def _make(self, made: Path, branch: str) -> None:
        """Clones a local repository by copying its objects: to have git pack them takes a hundred times as long. Links
        would share files that one side could spoil. What cannot be copied is left to the fetch.
        """
        source = self.git.local_directory
        if source and not await asyncio.to_thread(self.git.lacks_objects):
            cloned = await self.git.try_run(
                made.parent, "clone", "--quiet", "--bare", "--local", "--no-hardlinks", "--dissociate", "--no-tags",
                "--single-branch", f"--branch={branch}", "--template=", "--", str(source), str(made),
            )  # fmt: skip
            if cloned.exit_code == 0:
                await self.git.run(made, "remote", "remove", "origin")
                return
        await self.git.init(made)

    def _write_attributes(self) -> None:
        """Writes the attributes, also to a mirror that an older version made."""
        (self.directory / "info").mkdir(exist_ok=True)
        (self.directory / "info" / "attributes").write_text(_ATTRIBUTES, encoding="ascii")


def _refspec(branch: str) -> str:
    return f"+refs/heads/{branch}:refs/heads/{branch}"


async def find_base(git: Git, setting: str | None, directory: Path) -> str:
    """Returns the branch of the setting or, without one, the repository's default branch.

    Raises:
        GitError: the repository cannot be read, is a shallow clone, or has no such branch.
    """
    if await asyncio.to_thread(git.is_shallow):
        raise GitError(IS_SHALLOW)
    branch = setting or await git.default_branch(directory)
    if not await git.has_branch(directory, branch):
        raise GitError(f"it has no branch {branch}: set {PREFIX}BASE_BRANCH to one that exists")
    return branch


@dataclass
class FirstFetch:
    """Creates the mirror when the server starts, so that no job has to wait for it.

    Fetches the base branch, and retries after `pause` seconds until that succeeds. `state` is reported by `/health`.
    """

    mirror: Mirror
    base: str
    pause: float = _PAUSE_S
    state: Literal["being made", "made", "out of reach"] = "being made"

    async def run(self) -> None:
        """Fetches until it has succeeded."""
        while True:
            try:
                await self.mirror.fetch(self.base)
            except GitError as error:
                if self.state != "out of reach":
                    logger.warning("the mirror of the repository cannot be made yet: %s", error)
                self.state = "out of reach"
                await asyncio.sleep(self.pause)
            else:
                self.state = "made"
                return


@dataclass(frozen=True)
class TreeSnapshot:
    """Implements `Snapshot` with files of the mirror, each read on demand.

    Its methods block, so call them in a thread. `tree` can also be a commit.
    """

    mirror: Mirror
    tree: str

    def paths(self) -> tuple[PurePosixPath, ...]:
        return tuple(sorted(self._blobs, key=lambda path: path.parts))

    def may_hold(self, path: PurePosixPath) -> bool:
        entries, folders = self._listing.entries, self._listing.folders
        return path in entries or path in folders or not entries.keys().isdisjoint(path.parents)

    def read(self, path: PurePosixPath) -> bytes | None:
        with suppress(OSError):
            return self.mirror.reader().output("cat-file", "blob", self._blobs[path]) if path in self._blobs else None
        return None

    def read_all(self, paths: Iterable[PurePosixPath]) -> Iterator[tuple[PurePosixPath, bytes]]:
        if wanted := [path for path in paths if path in self._blobs]:
            with self.mirror.reader().blobs() as read:
                yield from ((path, read(self._blobs[path])) for path in wanted)

    def write_files(self, folder: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="index-") as scratch:
            place = self.mirror.place(folder, Path(scratch, "index"))
            self.mirror.reader(folder, place).output("read-tree", "-u", "--reset", self.tree)

    @cached_property
    def _blobs(self) -> dict[PurePosixPath, str]:
        """The ids of readable files."""
        return {path: entry.id for path, entry in self._listing.entries.items() if entry.is_readable}

    @cached_property
    def _listing(self) -> TreeListing:
        """Empty if git cannot list the tree."""
        with suppress(OSError):
            return parse_listing(self.mirror.reader().output(*LIST_TREE, self.tree).decode(errors="surrogateescape"))
        return TreeListing({})
