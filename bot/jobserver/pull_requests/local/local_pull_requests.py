"""Local pull requests: recorded in a table, with their commits in a mirror of the repository."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from bot.jobapi.models import PullRequestState, Requester
from bot.jobserver.errors import GitError, MergeError, NoSuchBranchError
from bot.jobserver.pull_requests.interface import (
    MissingExtra,
    NewPullRequest,
    OpenedPullRequest,
)
from bot.jobserver.pull_requests.local.contents import Commit, ContentsReader
from bot.jobserver.pull_requests.local.table import STEPS, PullRequestRow, PullRequestTable, StateCounts
from bot.jobserver.pull_requests.recent_states import RecentStates
from bot.jobserver.repository.changed_files import PullRequestChange
from bot.jobserver.repository.mirror import BaseBranch, Mirror
from bot.jobserver.store.database import Database
from bot.jobserver.store.records import Extra
from bot.runtime.tasks import BackgroundTasks

logger = logging.getLogger(__name__)
_FETCH_EVERY_S = 30.0
"""How often at most git is asked whether an open pull request was merged by hand."""
LIST_LENGTH = 50
"""Pull requests on one page of the list."""
_MAX_PAUSE_S = 60.0


@dataclass(frozen=True)
class PullRequestList:
    """One page of the list, the newest first; pages are numbered from 1."""

    rows: tuple[PullRequestRow, ...]
    counts: StateCounts
    page: int
    pages: int


@dataclass(frozen=True)
class PullRequestContents:
    """What a person sees of a pull request. `commits` are the newest of `commit_count`."""

    row: PullRequestRow
    commits: tuple[Commit, ...]
    commit_count: int
    change: PullRequestChange


class LocalPullRequests:
    """Opens, shows, merges and closes them. What changes anything is done one call at a time.

    `reader` reads what the shown commits hold.
    """

    def __init__(self, table: PullRequestTable, mirror: Mirror, *, base: BaseBranch, public_url: str) -> None:
        self.reader = ContentsReader(mirror)
        self._table = table
        self._mirror = mirror
        self._base = base
        self._public_url = public_url
        self._lock = asyncio.Lock()
        self._states = RecentStates(for_seconds=_FETCH_EVERY_S, now=time.monotonic)

    async def find(self, branch: str) -> OpenedPullRequest | None:
        if await self._table.find(branch) is None:
            return None  # as for most jobs: nothing to wait for
        async with self._lock:
            found = await self._table.find(branch)
            # It may have been merged by hand meanwhile, with git alone.
            found = found and await self._refresh(found)
        return self._as_pull_request(found) if found else None

    async def state(self, number: int) -> PullRequestState:
        """Returns it as the table has it; one that is open may have been merged with git alone."""
        row = await self._table.get(number)
        if row.state is not PullRequestState.OPEN or self._states.get(number):
            return row.state
        async with self._lock:
            state = (await self._refresh(row)).state
        self._states.remember(number, state)
        return state

    async def open(self, new: NewPullRequest) -> OpenedPullRequest:
        async with self._lock:
            newest = await self._table.find(new.branch)
            if newest is not None and newest.state is PullRequestState.OPEN:
                return self._as_pull_request(newest)
            base, head = await self._fetch(self._base.name, new.branch)
            if head is None:
                raise NoSuchBranchError(f"the branch {new.branch} is not in the repository")
            start = await self._mirror.merge_base(base, head) or base
            row = await self._table.insert(new, base=self._base.name, base_commit=start, head_commit=head)
            await self._keep_commits(row.number, head)
            self._states.remember(row.number, PullRequestState.OPEN)
            return self._as_pull_request(row)

    async def add_extras(
        self, _pull_request: OpenedPullRequest, _extras: Collection[Extra], _requester: Requester | None
    ) -> tuple[MissingExtra, ...]:
        """There are none here."""
        return ()

    async def update(self, pull_request: OpenedPullRequest, addition: str) -> None:
        async with self._lock:
            await self._table.add_to_description(pull_request.number, addition)
            await self._refresh(await self._table.get(pull_request.number))

    async def list(self, state: PullRequestState | None, page: int) -> PullRequestList:
        """Returns a page of those in one state, or in any; the last one where there are not as many pages."""
        counts = await self._table.counts()
        pages = max(1, -(-counts.of(state) // LIST_LENGTH))
        page = min(page, pages)
        rows = await self._table.newest(state, offset=(page - 1) * LIST_LENGTH, limit=LIST_LENGTH)
        return PullRequestList(tuple(rows), counts, page, pages)

    async def contents(self, number: int) -> PullRequestContents:
        """Returns a pull request as it is now.

        Raises:
            PullRequestNotFoundError: there is none of this number.
            GitError: its commits cannot be read.
        """
        async with self._lock:
            row = await self._refresh(await self._table.get(number))
        ends = (row.base_commit, row.head_commit)
        return PullRequestContents(
            row,
            await self.reader.commits(*ends),
            await self.reader.commit_count(*ends),
            await self.reader.change(*ends),
        )

    async def file(self, number: int, side: Literal["before", "after"], path: str, *, limit: int) -> bytes | None:
        """Returns a file as it is before or after the change; None where there is none, or it is larger than `limit`.

        Raises:
            PullRequestNotFoundError: there is none of this number.
        """
        row = await self._table.get(number)
        return await self.reader.file(row.base_commit if side == "before" else row.head_commit, path, limit=limit)

    async def close(self, number: int, *, by: str) -> None:
        async with self._lock:
            row = await self._refresh(await self._table.get(number))
            if row.state is PullRequestState.OPEN:
                await self._table.end(row.number, PullRequestState.CLOSED, by=by)

    async def merge(self, number: int, *, head: str, by: str) -> None:
        """Merges into the base branch and pushes it. Does nothing if it was merged before.

        `head` is the commit that the person has seen.

        Raises:
            MergeError: with a message for the page; nothing was changed.
        """
        async with self._lock:
            row = await self._refresh(await self._table.get(number))
            if row.state is PullRequestState.MERGED:
                return
            if row.state is PullRequestState.CLOSED:
                raise MergeError("This pull request is closed, so it cannot be merged.")
            if row.head_commit != head:
                raise MergeError("The branch has changed since you opened this page. Look at it again, then merge.")
            message = f"Merge pull request #{row.number}: {row.title}\n\nMerged-by: {by}\n"
            await self._push_merge(row.head_commit, await self._base_of(row), message)
            await self._table.end(row.number, PullRequestState.MERGED, by=by)

    async def delete_ended(self, age: timedelta) -> int:
        """Forgets up to 100 that were merged or closed at least this long ago; returns how many."""
        numbers = await self._table.ended(age)
        for number in numbers:
            async with self._lock:
                await self._mirror.run("update-ref", "-d", f"refs/pulls/{number}/head")
                await self._table.delete(number)
        return len(numbers)

    async def _refresh(self, row: PullRequestRow) -> PullRequestRow:
        """Catches up with what was pushed; what is known is still shown while the repository is out of reach."""
        if row.state is not PullRequestState.OPEN:
            return row
        try:
            base, newest = await self._fetched(row)
        except GitError:
            return row
        head = newest or row.head_commit  # somebody deleted the branch
        parted = await self._mirror.merge_base(base, head) or base
        merged = parted == head
        start = row.base_commit if merged else parted
        await self._keep_commits(row.number, head)
        await self._table.set_commits(row.number, base_commit=start, head_commit=head)
        if merged:
            await self._table.end(row.number, PullRequestState.MERGED, by=None)
        return await self._table.get(row.number)

    async def _base_of(self, row: PullRequestRow) -> str:
        """Returns the branch that it is for; where that is gone, the base as it is called now."""
        try:
            await self._fetch(row.base, row.branch)
        except NoSuchBranchError:
            return self._base.name
        return row.base

    async def _fetched(self, row: PullRequestRow) -> tuple[str, str | None]:
        """Returns the newest commits of the target branch, or of the base if that is gone, and of its own branch."""
        try:
            return await self._fetch(row.base, row.branch)
        except NoSuchBranchError:
            return await self._fetch(self._base.name, row.branch)

    async def _fetch(self, base: str, branch: str) -> tuple[str, str | None]:
        """Returns the newest commits of two branches; None for the second if it does not exist."""
        tips = await self._mirror.fetch(base, branch)
        return tips[base].commit, tips[branch].commit if branch in tips else None

    async def _keep_commits(self, number: int, head: str) -> None:
        """Keeps a pull request's commits even if its branch is deleted."""
        await self._mirror.run("update-ref", f"refs/pulls/{number}/head", head)

    async def _push_merge(self, head: str, base: str, message: str) -> None:
        """Merges a commit into the newest commit of the base branch, without a working copy, and pushes it.

        Raises:
            MergeError: nothing was changed; the message is for the page.
            GitError: the repository is unreachable.
        """
        newest = (await self._mirror.fetch(base))[base].commit
        try:
            merged = await self._mirror.merge(newest, head)
        except GitError as error:
            raise MergeError(f"git could not merge this: {error}") from error
        if merged.conflicts:
            raise MergeError(
                f"This cannot be merged automatically: {base} has changed the same lines in "
                f"{', '.join(merged.conflicts[:10])}. "
                "Merge it by hand with git, or ask for the change again in a new job."
            )
        commit = await self._mirror.commit((newest, head), merged.tree, message)
        pushed = await self._mirror.git.push(self._mirror.directory, commit, base)
        if pushed.exit_code:
            raise MergeError(_push_message(pushed.errors, base))

    def _as_pull_request(self, row: PullRequestRow) -> OpenedPullRequest:
        return OpenedPullRequest(row.number, f"{self._public_url}/pulls/{row.number}", row.branch, row.state)


@asynccontextmanager
async def open_local_pull_requests(
    mirror: Mirror,
    database: Path,
    *,
    base: BaseBranch,
    public_url: str,
    now: Callable[[], datetime],
    keep_ended: timedelta,
) -> AsyncIterator[LocalPullRequests]:
    """Opens the database, and closes it at the end; meanwhile what ended `keep_ended` ago is forgotten."""
    async with Database(database, STEPS) as opened:
        table = PullRequestTable(opened, now=now)
        kept = LocalPullRequests(table, mirror, base=base, public_url=public_url)
        forgetting = BackgroundTasks()
        forgetting.spawn(_keep_forgetting(kept, keep_ended), name="forgetting pull requests")
        try:
            yield kept
        finally:
            await forgetting.cancel()


async def _keep_forgetting(pull_requests: LocalPullRequests, age: timedelta) -> None:
    pause = min(_MAX_PAUSE_S, max(0.1, age.total_seconds() / 10))
    while True:
        try:
            while await pull_requests.delete_ended(age):
                pass
        except Exception:
            logger.exception("old pull requests could not be forgotten; trying again")
        await asyncio.sleep(pause)


def _push_message(errors: str, base: str) -> str:
    if "non-fast-forward" in errors or "fetch first" in errors or "cannot lock ref" in errors:
        return f"{base} has just changed. Please try again."
    if "unstaged changes" in errors or "uncommitted" in errors or "Working directory" in errors:
        return (
            f"The repository's working copy of {base} has changes that are not committed. Commit them, then try again."
        )
    return f"The repository did not take the merge: {' '.join(errors.split())[-300:]}"
