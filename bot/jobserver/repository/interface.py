"""The repository as the executor needs it: checks files out and takes changes back; agents never reach git."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bot.jobserver.models import Changes
from bot.jobserver.repository.snapshot import Snapshot


@dataclass(frozen=True)
class StartingPoint:
    """Where an instruction begins. `parents` are the commits that its commit is put on, the first one the branch's own.

    `tree` (a tree of git, no commit) is what is checked out: the branch's files, brought up to date with the base where
    that merged cleanly. `base` is the base branch's commit. `note` says in words what was done or could not be done;
    empty where there was nothing to do.
    """

    parents: tuple[str, ...]
    tree: str
    base: str
    note: str = ""


@dataclass(frozen=True)
class Collected:
    """What an editor left: a tree of git, and in words what was left out, and why, and what to know of the rest."""

    tree: str
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Repository(Protocol):
    """The repository that jobs work on. All methods raise GitError."""

    async def start(self, branch: str) -> StartingPoint:
        """Fetches base and branch; a branch that does not exist yet starts at the base."""
        ...

    async def check_out(self, tree: str, directory: Path) -> None:
        """Writes the files of a tree, or of a commit, into an empty directory, with no git directory and no links."""
        ...

    async def collect(self, tree: str, directory: Path) -> Collected:
        """Takes back the files of a directory into which `tree` was checked out; the same tree if nothing changed."""
        ...

    async def commit(self, start: StartingPoint, tree: str, message: str) -> str:
        """Makes a commit of a tree and returns its id."""
        ...

    async def push(self, commit: str, branch: str) -> None:
        """Pushes a commit without force. Raises PushRejectedError where somebody else's commits are in the way."""
        ...

    async def newest(self, branch: str) -> str | None:
        """Returns the branch's newest commit as it was fetched last; None where there is none."""
        ...

    async def trailer(self, commit: str, key: str) -> str:
        """Returns the value of a trailer of a commit's message; empty where there is none."""
        ...

    async def changes(self, start: str, end: str) -> Changes:
        """Returns what a pull request of `end` into `start` changes, without the titles of pages."""
        ...

    def snapshot(self, tree: str) -> Snapshot:
        """Returns the files of a tree, or of a commit."""
        ...
