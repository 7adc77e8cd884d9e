"""The fresh clone in which one instruction is executed."""

from dataclasses import dataclass
from pathlib import Path

from bot.jobserver.errors import GitError
from bot.jobserver.executor.descriptions import TRAILER, commit_message, trailer_value
from bot.jobserver.repository.git import Git
from bot.jobserver.repository.refusals import explain
from bot.jobserver.store.jobs import Instruction

_SYMLINK_MODE = "120000"


@dataclass(frozen=True)
class WorkingCopy:
    """A clone with the job's branch checked out; `start` is the commit it starts from."""

    git: Git
    directory: Path
    start: str

    @classmethod
    async def clone(cls, git: Git, directory: Path, *, branch: str, base: str) -> "WorkingCopy":
        """Clones, and checks out the branch as it was pushed before, or the base where that holds all of it.

        Raises:
            GitError: the repository cannot be read, or has no such base.
        """
        await git.clone(directory)
        base_commit = await git.revision(directory, f"refs/remotes/origin/{base}")
        if base_commit is None:
            raise GitError(f"the repository has no branch {base}")
        start = await git.revision(directory, f"refs/remotes/origin/{branch}") or base_commit
        if await git.succeeds(directory, "merge-base", "--is-ancestor", start, base_commit):
            start = base_commit
        await git.run(
            directory, "checkout", "--quiet", "--no-recurse-submodules", "--no-track", "-B", branch, start, "--"
        )
        return cls(git, directory, start)

    async def is_done(self, instruction: Instruction) -> bool:
        """Whether this instruction's commit was pushed before a crash."""
        trailers = await self._run("log", "-1", f"--format=%(trailers:key={TRAILER},valueonly)", self.start, "--")
        return trailers.strip() == trailer_value(instruction)

    async def commit(self, instruction: Instruction) -> bool:
        """Makes one commit of whatever the editor left; False if that is nothing.

        An agent may have committed by itself or switched branches: only its files count.
        """
        await self._run("symbolic-ref", "HEAD", f"refs/heads/{instruction.branch}")
        await self._run("reset", "--quiet", "--soft", self.start, "--")
        await self._restore_symlinks()
        await self._run("add", "--all", "--", ".")
        if await self.git.succeeds(self.directory, "diff", "--cached", "--quiet", "--no-ext-diff", self.start, "--"):
            return False
        await self._run(
            "commit", "--quiet", "--no-verify", "--cleanup=whitespace", "-F", "-",
            stdin=commit_message(instruction).encode(),
        )  # fmt: skip
        return True

    async def push(self, branch: str) -> None:
        """Pushes the commit.

        Raises:
            GitError: the repository did not take it.
        """
        pushed = await self.git.push(self.directory, "HEAD", branch)
        if pushed.exit_code:
            words = explain(pushed.errors) or " ".join(pushed.errors.split())[-300:]
            raise GitError(f"the branch could not be pushed: {words}")

    async def _restore_symlinks(self) -> None:
        """Links are small text files in the copy; no edit of such a file may turn it into a link elsewhere."""
        listed = await self._run("ls-tree", "-r", "-z", self.start)
        links = [entry.partition("\t")[2] for entry in listed.split("\0") if entry.startswith(_SYMLINK_MODE)]
        if links:
            await self._run(
                "checkout", "--quiet", self.start, "--pathspec-from-file=-", "--pathspec-file-nul",
                stdin="\0".join(links).encode(errors="surrogateescape"),
            )  # fmt: skip

    async def _run(self, *arguments: str, stdin: bytes = b"") -> str:
        return await self.git.run(self.directory, *arguments, stdin=stdin)
