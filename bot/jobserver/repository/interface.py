"""Where an instruction starts in the repository, and what an editor left there."""

from dataclasses import dataclass


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
