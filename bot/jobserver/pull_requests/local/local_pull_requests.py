"""Local pull requests: recorded in a table, with their commits in a mirror of the repository."""

import asyncio
from dataclasses import dataclass

from bot.jobserver.errors import GitError, MergeError
from bot.jobserver.pull_requests.interface import NewPullRequest, PullRequest, PullRequestState
from bot.jobserver.pull_requests.local.mirror import Commit, Mirror
from bot.jobserver.pull_requests.local.table import PullRequestRow, PullRequestTable


@dataclass(frozen=True)
class PullRequestContents:
    """What a person sees of a pull request. `diff` may be cut off at 2 MB."""

    row: PullRequestRow
    commits: tuple[Commit, ...]
    diff: str


class LocalPullRequests:
    """Opens, shows, merges and closes them, one call at a time."""

    def __init__(self, table: PullRequestTable, mirror: Mirror, *, base: str, public_url: str) -> None:
        self._table = table
        self._mirror = mirror
        self._base = base
        self._public_url = public_url
        self._lock = asyncio.Lock()

    async def find(self, branch: str) -> PullRequest | None:
        async with self._lock:
            found = await self._table.find(branch)
            # It may have been merged by hand meanwhile, with git alone.
            found = found and await self._refresh(found)
        return self._as_pull_request(found) if found else None

    async def open(self, new: NewPullRequest) -> PullRequest:
        async with self._lock:
            base, head = await self._mirror.fetch(self._base), await self._mirror.fetch(new.branch)
            start = await self._mirror.merge_base(base, head)
            row = await self._table.insert(new, base=self._base, base_commit=start, head_commit=head)
            await self._mirror.keep_commits(row.number, head)
            return self._as_pull_request(row)

    async def update(self, pull_request: PullRequest, addition: str) -> None:
        async with self._lock:
            await self._table.add_to_description(pull_request.number, addition)
            await self._refresh(await self._table.get(pull_request.number))

    async def newest(self) -> list[PullRequestRow]:
        """Returns the newest 500, the newest first."""
        return await self._table.newest()

    async def contents(self, number: int) -> PullRequestContents:
        """Returns a pull request as it is now.

        Raises:
            PullRequestNotFoundError: there is none of this number.
        """
        async with self._lock:
            row = await self._refresh(await self._table.get(number))
            commits = await self._mirror.commits(row.base_commit, row.head_commit)
            diff = await self._mirror.diff(row.base_commit, row.head_commit)
        return PullRequestContents(row, commits, diff)

    async def close(self, number: int) -> None:
        async with self._lock:
            row = await self._refresh(await self._table.get(number))
            if row.state is PullRequestState.OPEN:
                await self._table.end(row.number, PullRequestState.CLOSED)

    async def merge(self, number: int) -> None:
        """Merges into the base branch and pushes it. Does nothing if it was merged before.

        Raises:
            MergeError: with a message for the page; nothing was changed.
        """
        async with self._lock:
            row = await self._refresh(await self._table.get(number))
            if row.state is PullRequestState.MERGED:
                return
            if row.state is PullRequestState.CLOSED:
                raise MergeError("This pull request is closed, so it cannot be merged.")
            await self._mirror.merge(row.head_commit, row.base, f"Merge pull request #{row.number}: {row.title}")
            await self._table.end(row.number, PullRequestState.MERGED)

    async def _refresh(self, row: PullRequestRow) -> PullRequestRow:
        """Catches up with what was pushed; what is known is still shown while the repository is out of reach."""
        if row.state is not PullRequestState.OPEN:
            return row
        try:
            base = await self._mirror.fetch(row.base)
        except GitError:
            return row
        head = await self._newest_head(row)
        merged = await self._mirror.is_merged(head, base)
        start = row.base_commit if merged else await self._mirror.merge_base(base, head)
        await self._mirror.keep_commits(row.number, head)
        await self._table.set_commits(row.number, base_commit=start, head_commit=head)
        if merged:
            await self._table.end(row.number, PullRequestState.MERGED)
        return await self._table.get(row.number)

    async def _newest_head(self, row: PullRequestRow) -> str:
        """Returns the branch's newest commit; the last one known where somebody deleted the branch."""
        try:
            return await self._mirror.fetch(row.branch)
        except GitError:
            return row.head_commit

    def _as_pull_request(self, row: PullRequestRow) -> PullRequest:
        return PullRequest(row.number, f"{self._public_url}/pulls/{row.number}", row.branch, row.state)
