"""Pull requests kept beside the repository, with real merges, for people without a forge."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import aiosqlite

from bot.jobserver.database import Database
from bot.jobserver.errors import GitError, JobServerError, MergeError
from bot.jobserver.git import Git, printable
from bot.jobserver.pull_requests import Proposal, PullRequest, State

SCHEMA = """
CREATE TABLE pull_requests (
    number INTEGER PRIMARY KEY AUTOINCREMENT, branch TEXT NOT NULL, base TEXT NOT NULL, title TEXT NOT NULL,
    description TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('open', 'merged', 'closed')),
    base_commit TEXT NOT NULL, head_commit TEXT NOT NULL, created_at TEXT NOT NULL, ended_at TEXT
) STRICT;
CREATE UNIQUE INDEX one_open_a_branch ON pull_requests (branch) WHERE state = 'open';
"""
# Names the heading above a change instead of any line; git knows these two by itself.
_ATTRIBUTES = "*.md diff=markdown\n*.mdx diff=markdown\n*.html diff=html\n"
_DIFF_LIMIT = 2_000_000
_COMMIT_LIMIT = 250


class UnknownPullRequestError(JobServerError):
    """There is no pull request of this number."""


@dataclass(frozen=True)
class Commit:
    """One commit of a pull request."""

    id: str
    author: str
    written_at: datetime
    subject: str


@dataclass(frozen=True)
class Record:
    """A pull request as it is kept; the two commits are the ends of its diff."""

    number: int
    branch: str
    base: str
    title: str
    description: str
    state: State
    base_commit: str
    head_commit: str
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True)
class Contents:
    """What a person sees of a pull request. `diff` may be cut off at 2 MB."""

    record: Record
    commits: tuple[Commit, ...]
    diff: str


class LocalPullRequests:
    """Keeps them in a database, and their commits in a bare clone of its own, so that they outlive the branches."""

    def __init__(
        self, git: Git, database: Database, mirror: Path, *, base: str, public_url: str, now: Callable[[], datetime]
    ) -> None:
        self._git = git
        self._database = database
        self._mirror = mirror
        self._base = base
        self._public_url = public_url
        self._now = now
        self._lock = asyncio.Lock()

    async def find_open(self, branch: str) -> PullRequest | None:
        async with self._lock, self._database.transaction() as connection:
            rows = await connection.execute_fetchall(
                "SELECT * FROM pull_requests WHERE branch = ? AND state = 'open'", (branch,)
            )
        found = next((self._public(_record(row)) for row in rows), None)
        if found is None:
            return None
        # It may have been merged by hand meanwhile, with git alone.
        return found if (await self.contents(found.number)).record.state is State.OPEN else None

    async def open(self, proposal: Proposal) -> PullRequest:
        async with self._lock:
            base, head = await self._fetch(self._base), await self._fetch(proposal.branch)
            start = await self._merge_base(base, head)
            async with self._database.transaction() as connection:
                cursor = await connection.execute(
                    "INSERT INTO pull_requests (branch, base, title, description, state, base_commit, head_commit, "
                    "created_at) VALUES (?, ?, ?, ?, 'open', ?, ?, ?) RETURNING *",
                    (proposal.branch, self._base, proposal.title, proposal.description, start, head, self._moment()),
                )
                rows = list(await cursor.fetchall())
            record = _record(rows[0])
            await self._git.run(self._mirror, "update-ref", f"refs/pulls/{record.number}/head", head)
            return self._public(record)

    async def update(self, pull_request: PullRequest, addition: str) -> None:
        async with self._lock:
            async with self._database.transaction() as connection:
                await connection.execute(
                    "UPDATE pull_requests SET description = description || char(10, 10) || :addition "
                    "WHERE number = :number AND instr(description, :addition) = 0",
                    {"number": pull_request.number, "addition": addition},
                )
            await self._refresh(await self._get(pull_request.number))

    async def all(self) -> list[Record]:
        """Every pull request, the newest first."""
        async with self._database.transaction() as connection:
            rows = await connection.execute_fetchall("SELECT * FROM pull_requests ORDER BY number DESC LIMIT 500")
            return [_record(row) for row in rows]

    async def contents(self, number: int) -> Contents:
        """A pull request as it is now.

        Raises:
            UnknownPullRequestError: there is none of this number.
        """
        async with self._lock:
            record = await self._refresh(await self._get(number))
            span = f"{record.base_commit}..{record.head_commit}"
            log = await self._git.run(
                self._mirror, "log", "-z", "--reverse", "--no-merges", f"--max-count={_COMMIT_LIMIT}",
                "--format=%H%x00%an%x00%cI%x00%s", span, "--",
            )  # fmt: skip
            diff = await self._git.answer(
                self._mirror, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames",
                "--src-prefix=a/", "--dst-prefix=b/", span, "--",
            )  # fmt: skip
        return Contents(record, _commits(printable(log)), printable(diff.output[:_DIFF_LIMIT]))

    async def close(self, number: int) -> None:
        async with self._lock:
            record = await self._refresh(await self._get(number))
            if record.state is State.OPEN:
                await self._end(record, State.CLOSED)

    async def merge(self, number: int) -> None:
        """Merge into the base branch and push it. Does nothing if it was merged before.

        Raises:
            MergeError: with words for the page; nothing was changed.
        """
        async with self._lock:
            record = await self._refresh(await self._get(number))
            if record.state is State.MERGED:
                return
            if record.state is State.CLOSED:
                raise MergeError("This pull request is closed, so it cannot be merged.")
            with tempfile.TemporaryDirectory(dir=self._mirror.parent, prefix="merge-") as scratch:
                await self._merge_in(Path(scratch) / "copy", record)
            await self._end(record, State.MERGED)

    async def _merge_in(self, copy: Path, record: Record) -> None:
        git, base = self._git, f"refs/heads/{record.base}"
        await git.run(self._mirror, "worktree", "add", "--quiet", "--detach", str(copy), base)
        try:
            message = f"Merge pull request #{record.number}: {record.title}"
            merged = await git.answer(
                copy, "merge", "--quiet", "--no-ff", "--no-verify", "-m", message, record.head_commit
            )
            if merged.code:
                raise MergeError(await self._conflict_words(copy, merged.errors))
            pushed = await git.push(copy, "HEAD", record.base)
            if pushed.code:
                raise MergeError(_push_words(pushed.errors, record.base))
        finally:
            await asyncio.to_thread(shutil.rmtree, copy, ignore_errors=True)
            await git.run(self._mirror, "worktree", "prune")

    async def _conflict_words(self, copy: Path, errors: str) -> str:
        listed = await self._git.run(copy, "diff", "--name-only", "--diff-filter=U", "-z")
        files = [name for name in listed.split("\0") if name]
        if not files:
            return f"git could not merge this: {errors.strip()[-300:]}"
        return (
            f"This cannot be merged by itself: {self._base} has changed the same lines in {', '.join(files[:10])}. "
            "Merge it by hand with git, or ask for the change again in a new job."
        )

    async def _get(self, number: int) -> Record:
        async with self._database.transaction() as connection:
            rows = await connection.execute_fetchall("SELECT * FROM pull_requests WHERE number = ?", (number,))
        for row in rows:
            return _record(row)
        raise UnknownPullRequestError("there is no pull request of this number")

    async def _refresh(self, record: Record) -> Record:
        """Catch up with what was pushed; what is known is still shown while the repository is out of reach."""
        if record.state is not State.OPEN:
            return record
        try:
            base = await self._fetch(record.base)
        except GitError:
            return record
        head = await self._fetch_head(record)
        merged = await self._git.succeeds(self._mirror, "merge-base", "--is-ancestor", head, base)
        start = record.base_commit if merged else await self._merge_base(base, head)
        await self._git.run(self._mirror, "update-ref", f"refs/pulls/{record.number}/head", head)
        async with self._database.transaction() as connection:
            await connection.execute(
                "UPDATE pull_requests SET base_commit = ?, head_commit = ? WHERE number = ?",
                (start, head, record.number),
            )
        if merged:
            await self._end(record, State.MERGED)
        return await self._get(record.number)

    async def _fetch_head(self, record: Record) -> str:
        """The branch's newest commit; the last one known where somebody deleted the branch."""
        try:
            return await self._fetch(record.branch)
        except GitError:
            return record.head_commit

    async def _fetch(self, branch: str) -> str:
        if not self._mirror.exists():
            await self._make_mirror()
        ref = f"refs/heads/{branch}"
        await self._git.run(
            self._mirror, "fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head",
            "--", self._git.address, f"+{ref}:{ref}",
        )  # fmt: skip
        commit = await self._git.revision(self._mirror, ref)
        if commit is None:
            raise GitError(f"the branch {branch} is not in the repository")
        return commit

    async def _make_mirror(self) -> None:
        with tempfile.TemporaryDirectory(dir=self._mirror.parent, prefix="mirror-") as scratch:
            made = Path(scratch) / "mirror.git"
            await self._git.run(self._mirror.parent, "init", "--quiet", "--bare", "--template=", str(made))
            (made / "info").mkdir(exist_ok=True)
            (made / "info" / "attributes").write_text(_ATTRIBUTES, encoding="ascii")
            made.rename(self._mirror)

    async def _merge_base(self, base: str, head: str) -> str:
        answer = await self._git.answer(self._mirror, "merge-base", base, head)
        return answer.output.strip() or base

    async def _end(self, record: Record, state: State) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(
                "UPDATE pull_requests SET state = ?, ended_at = ? WHERE number = ?",
                (state.value, self._moment(), record.number),
            )

    def _moment(self) -> str:
        return self._now().astimezone(UTC).isoformat()

    def _public(self, record: Record) -> PullRequest:
        return PullRequest(record.number, f"{self._public_url}/pulls/{record.number}", record.branch, record.state)


def _record(row: aiosqlite.Row) -> Record:
    ended_at = row["ended_at"]
    return Record(
        number=row["number"],
        branch=row["branch"],
        base=row["base"],
        title=row["title"],
        description=row["description"],
        state=State(row["state"]),
        base_commit=row["base_commit"],
        head_commit=row["head_commit"],
        created_at=datetime.fromisoformat(row["created_at"]),
        ended_at=datetime.fromisoformat(ended_at) if ended_at else None,
    )


def _commits(log: str) -> tuple[Commit, ...]:
    fields = log.rstrip("\0").split("\0") if log else []
    records = [fields[start : start + 4] for start in range(0, len(fields) - 3, 4)]
    return tuple(
        Commit(commit, author, datetime.fromisoformat(written_at), subject)
        for commit, author, written_at, subject in records
    )


def _push_words(errors: str, base: str) -> str:
    if "non-fast-forward" in errors or "fetch first" in errors or "cannot lock ref" in errors:
        return f"{base} has just changed. Please try again."
    if "unstaged changes" in errors or "uncommitted" in errors or "Working directory" in errors:
        return (
            f"The repository's working copy of {base} has changes that are not committed. Commit them, then try again."
        )
    return f"The repository did not take the merge: {' '.join(errors.split())[-300:]}"
