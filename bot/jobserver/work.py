"""Carries out one instruction: clone, edit, commit, push, pull request."""

import asyncio
import re
import shutil
import tempfile
from pathlib import Path

from bot.jobserver.editors import Editor
from bot.jobserver.errors import GitError, JobServerError
from bot.jobserver.git import Git
from bot.jobserver.jobs import Instruction
from bot.jobserver.pull_requests import Proposal, PullRequests

_TRAILER = "Pagehand-Instruction"
_SUBJECT_LENGTH = 72
_LINK_MODE = "120000"


class Workshop:
    """Where instructions are carried out. Each gets a fresh clone, removed afterwards.

    `directory` holds a folder of clones and a folder of logs, one log a job.
    """

    def __init__(self, git: Git, editor: Editor, pull_requests: PullRequests, *, base: str, directory: Path) -> None:
        self._git = git
        self._editor = editor
        self._pull_requests = pull_requests
        self._base = base
        self._copies = directory / "copies"
        self._logs = directory / "logs"

    def prepare(self) -> None:
        """Make the folders, and remove the clones that a killed server left."""
        shutil.rmtree(self._copies, ignore_errors=True)
        self._copies.mkdir(mode=0o700, exist_ok=True)
        self._logs.mkdir(mode=0o700, exist_ok=True)

    async def carry_out(self, instruction: Instruction) -> str | None:
        """Returns the pull request's link if the instruction changed anything, else None.

        Raises:
            JobServerError: the reason, also written to the job's log.
        """
        log = self._logs / f"{instruction.job_id}.log"
        scratch = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=self._copies, prefix=f"{instruction.job_id}-"))
        try:
            return await self._carry_out(instruction, scratch / "repository", log)
        except JobServerError as error:
            await asyncio.to_thread(_append, log, f"failed: {error}")
            raise
        finally:
            await asyncio.shield(asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True))

    async def _carry_out(self, instruction: Instruction, copy: Path, log: Path) -> str | None:
        start = await self._check_out(copy, instruction.branch)
        summary = ""
        if not await self._is_done(copy, start, instruction):
            await asyncio.to_thread(_append, log, f"instruction {instruction.number} from {start}")
            summary = await self._editor.edit(instruction.prompt, copy, log)
            if not await self._commit(copy, start, instruction):
                return None
            pushed = await self._git.push(copy, "HEAD", instruction.branch)
            if pushed.code:
                raise GitError(f"the branch could not be pushed: {' '.join(pushed.errors.split())[-300:]}")
        return await self._propose(instruction, summary)

    async def _check_out(self, copy: Path, branch: str) -> str:
        """Clone and check out the job's branch: where it was pushed to, or the base if that holds all of it."""
        git = self._git
        await git.clone(copy)
        base = await git.revision(copy, f"refs/remotes/origin/{self._base}")
        if base is None:
            raise GitError(f"the repository has no branch {self._base}")
        start = await git.revision(copy, f"refs/remotes/origin/{branch}") or base
        if await git.succeeds(copy, "merge-base", "--is-ancestor", start, base):
            start = base
        await git.run(copy, "checkout", "--quiet", "--no-recurse-submodules", "--no-track", "-B", branch, start, "--")
        return start

    async def _is_done(self, copy: Path, start: str, instruction: Instruction) -> bool:
        """Whether this instruction's commit was pushed before a crash: our trailer is always the last paragraph."""
        trailers = await self._git.run(copy, "log", "-1", f"--format=%(trailers:key={_TRAILER},valueonly)", start, "--")
        return trailers.strip() == _mark(instruction)

    async def _commit(self, copy: Path, start: str, instruction: Instruction) -> bool:
        """Commit whatever the editor left as one commit; False if that is nothing.

        An agent may have committed by itself or switched branches: only its files count.
        """
        git, branch = self._git, f"refs/heads/{instruction.branch}"
        await git.run(copy, "symbolic-ref", "HEAD", branch)
        await git.run(copy, "reset", "--quiet", "--soft", start, "--")
        await self._restore_links(copy, start)
        await git.run(copy, "add", "--all", "--", ".")
        if await git.succeeds(copy, "diff", "--cached", "--quiet", "--no-ext-diff", start, "--"):
            return False
        await git.run(
            copy, "commit", "--quiet", "--no-verify", "--cleanup=whitespace", "-F", "-",
            stdin=commit_message(instruction).encode(),
        )  # fmt: skip
        return True

    async def _restore_links(self, copy: Path, start: str) -> None:
        """Links are small text files in the copy; no edit of such a file may turn it into a link elsewhere."""
        listed = await self._git.run(copy, "ls-tree", "-r", "-z", start)
        links = [entry.partition("\t")[2] for entry in listed.split("\0") if entry.startswith(_LINK_MODE)]
        if links:
            await self._git.run(
                copy, "checkout", "--quiet", start, "--pathspec-from-file=-", "--pathspec-file-nul",
                stdin="\0".join(links).encode(errors="surrogateescape"),
            )  # fmt: skip

    async def _propose(self, instruction: Instruction, summary: str) -> str:
        description = describe(instruction.prompt, summary)
        existing = await self._pull_requests.find_open(instruction.branch)
        if existing is None:
            proposal = Proposal(instruction.branch, subject(instruction.prompt), description)
            return (await self._pull_requests.open(proposal)).link
        await self._pull_requests.update(existing, description)
        return existing.link


def _mark(instruction: Instruction) -> str:
    return f"{instruction.job_id}/{instruction.number}"


def subject(prompt: str) -> str:
    """A prompt as one line of at most 72 characters, without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in prompt).split()) or "Change the documentation"
    return line if len(line) <= _SUBJECT_LENGTH else f"{line[: _SUBJECT_LENGTH - 1].rstrip()}…"


def commit_message(instruction: Instruction) -> str:
    """The prompt's first words, the whole prompt, and a trailer that tells which instruction this was."""
    prompt = re.sub(r"[^\S\n]+|[\x00-\x08\x0b-\x1f\x7f]+", " ", instruction.prompt).strip()
    title = subject(instruction.prompt)
    body = "" if title == prompt else f"{prompt}\n\n"
    return f"{title}\n\n{body}{_TRAILER}: {_mark(instruction)}\n"


def describe(prompt: str, summary: str) -> str:
    """What was asked for, as a quotation, and what the editor says it did."""
    quoted = "\n".join(f"> {line}" for line in prompt.strip().splitlines())
    return f"{quoted}\n\n{summary}".strip()


def _append(log: Path, text: str) -> None:
    with log.open("ab") as stream:
        stream.write(text.encode(errors="replace") + b"\n")
