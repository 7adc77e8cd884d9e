"""Local pull requests: recorded in a table, with their commits in a mirror of the repository."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import aiosqlite

from bot.codehosts.pull_request import Check, CheckOutcome, PullRequest, Review, Verdict
from bot.jobapi.models import PullRequestState, Requester
from bot.jobserver.errors import DecisionError, GitError, NoSuchBranchError, PullRequestNotFoundError
from bot.jobserver.pull_requests.interface import NewPullRequest, OpenedPullRequest
from bot.jobserver.pull_requests.local.contents import Commit, ContentsReader
from bot.jobserver.repository.listings import PullRequestChange
from bot.jobserver.repository.mirror import BaseBranch, Mirror
from bot.jobserver.store.database import Database
from bot.jobserver.text import shortened

_FETCH_EVERY_S = 30.0
"""How often at most git is asked whether an open pull request was merged by hand."""
LIST_LENGTH = 100
"""Pull requests on the page that lists them."""
STEPS = (
    """
CREATE TABLE pull_requests (
    number INTEGER PRIMARY KEY AUTOINCREMENT, branch TEXT NOT NULL, base TEXT NOT NULL, title TEXT NOT NULL,
    description TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('open', 'merged', 'closed')),
    base_commit TEXT NOT NULL, head_commit TEXT NOT NULL, created_at TEXT NOT NULL, ended_at TEXT
) STRICT;
CREATE UNIQUE INDEX one_open_a_branch ON pull_requests (branch) WHERE state = 'open';
""",
    """
ALTER TABLE pull_requests ADD COLUMN ended_by TEXT;
ALTER TABLE pull_requests ADD COLUMN requested_by TEXT;
ALTER TABLE pull_requests ADD COLUMN request_url TEXT;
CREATE INDEX pull_requests_of_state ON pull_requests (state, number);
""",
    """
CREATE TABLE judgements (
    number INTEGER NOT NULL REFERENCES pull_requests ON DELETE CASCADE, head TEXT NOT NULL, kind TEXT NOT NULL,
    author TEXT NOT NULL, outcome TEXT NOT NULL, words TEXT NOT NULL, judged_at TEXT NOT NULL,
    PRIMARY KEY (number, head, kind, author)
) STRICT;
""",
)
"""How the database came to be; see `Database`."""
_DESCRIPTION_LIMIT = 200_000
_MOST_OF_A_KIND, _MOST_JUDGEMENTS, _LONGEST_WORDS = 100, 200, 4_000
"""Checks, and reviews, of one commit; judgements of earlier commits, and of all that are shown; characters of each."""
_KINDS: Mapping[str, type[Verdict | CheckOutcome]] = {"review": Verdict, "check": CheckOutcome}


@dataclass(frozen=True)
class PullRequestRow:
    """A stored pull request; the two commits are the ends of its diff.

    `ended_by` is who merged or closed it on its page; None where that is not known, as for a merge by hand.
    """

    number: int
    branch: str
    base: str
    title: str
    description: str
    state: PullRequestState
    base_commit: str
    head_commit: str
    created_at: datetime
    ended_at: datetime | None
    ended_by: str | None = None
    requested_by: str | None = None
    request_url: str | None = None


@dataclass(frozen=True)
class Judgement:
    """What a reviewer or a check says of a commit; `author` is the name of either."""

    head: str
    author: str
    outcome: Verdict | CheckOutcome
    words: str = ""


@dataclass(frozen=True)
class PullRequestContents:
    """What a person sees of a pull request. `commits` are the newest of `commit_count`; the judgements of the newest
    commit come first.
    """

    row: PullRequestRow
    judgements: tuple[Judgement, ...]
    commits: tuple[Commit, ...]
    commit_count: int
    change: PullRequestChange


class LocalPullRequests:
    """Opens, shows, merges and closes them. What changes anything is done one call at a time.

    `reader` reads what the shown commits hold.
    """

    def __init__(
        self, database: Database, mirror: Mirror, *, base: BaseBranch, public_url: str, now: Callable[[], datetime]
    ) -> None:
        self.reader = ContentsReader(mirror)
        self._database = database
        self._now = now
        self._mirror = mirror
        self._base = base
        self._public_url = public_url
        self._lock = asyncio.Lock()
        self._looked_at: dict[int, float] = {}
        """When git was asked about the open ones, in monotonic seconds."""

    async def find(self, branch: str) -> OpenedPullRequest | None:
        if await self._newest(branch) is None:
            return None  # as for most jobs: nothing to wait for
        async with self._lock:
            found = await self._newest(branch)
            # It may have been merged by hand meanwhile, with git alone.
            found = found and await self._refresh(found)
        return self._as_pull_request(found) if found else None

    async def read(self, number: int) -> PullRequest:
        row = await self._get(number)
        is_open = row.state is PullRequestState.OPEN
        if is_open and time.monotonic() - self._looked_at.get(number, float("-inf")) >= _FETCH_EVERY_S:
            async with self._lock:
                row = await self._refresh(row)
            self._looked_at[number] = time.monotonic()
        link = self._as_pull_request(row).link
        # A new commit makes what was said of the others out of date.
        judged = [(each, each.outcome) for each in await self._judgements(row) if each.head == row.head_commit]
        return PullRequest(
            number=row.number,
            link=link,
            state=row.state,
            title=row.title,
            head=row.head_commit,
            base=row.base,
            ended_by=row.ended_by,
            updated_at=row.ended_at.isoformat() if row.ended_at else None,
            checks=tuple(
                Check(name=check.author, outcome=outcome, words=check.words or None)
                for check, outcome in judged
                if isinstance(outcome, CheckOutcome)
            ),
            reviews=tuple(
                Review(author=review.author, verdict=verdict, head=review.head, link=f"{link}#judgements")
                for review, verdict in judged
                if isinstance(verdict, Verdict)
            ),
        )

    async def open(self, new: NewPullRequest) -> OpenedPullRequest:
        async with self._lock:
            newest = await self._newest(new.branch)
            if newest is not None and newest.state is PullRequestState.OPEN:
                return self._as_pull_request(newest)
            base, head = await self._fetch(self._base.name, new.branch)
            if head is None:
                raise NoSuchBranchError(f"the branch {new.branch} is not in the repository")
            start = await self._mirror.merge_base(base, head) or base
            requester = (new.requester.name, new.requester.url) if new.requester else (None, None)
            rows = await self._database.rows(
                "INSERT INTO pull_requests (branch, base, title, description, state, base_commit, head_commit, "
                "created_at, requested_by, request_url) VALUES (?, ?, ?, ?, 'open', ?, ?, ?, ?, ?) RETURNING *",
                (new.branch, self._base.name, new.title, new.description, start, head, self._iso_now(), *requester),
            )
            row = _from_row(rows[0])
            await self._keep_commits(row.number, head)
            self._looked_at[row.number] = time.monotonic()
            return self._as_pull_request(row)

    async def add_extras(self, _pull_request: OpenedPullRequest, _requester: Requester | None) -> tuple[str, ...]:
        """There are none here."""
        return ()

    async def update(self, pull_request: OpenedPullRequest, addition: str) -> None:
        async with self._lock:
            await self._database.execute(
                "UPDATE pull_requests SET description = description || char(10, 10) || :addition "
                "WHERE number = :number AND instr(description, :addition) = 0 AND length(description) < :limit",
                {"number": pull_request.number, "addition": addition, "limit": _DESCRIPTION_LIMIT},
            )
            await self._refresh(await self._get(pull_request.number))

    async def list(self) -> tuple[PullRequestRow, ...]:
        """Returns the open ones, then the others, the newest of each first."""
        rows = await self._database.rows(
            "SELECT * FROM pull_requests ORDER BY state = 'open' DESC, number DESC LIMIT ?", (LIST_LENGTH,)
        )
        return tuple(map(_from_row, rows))

    async def contents(self, number: int) -> PullRequestContents:
        """Returns a pull request as it is now.

        Raises:
            PullRequestNotFoundError: there is none of this number.
            GitError: its commits cannot be read.
        """
        async with self._lock:
            row = await self._refresh(await self._get(number))
        ends = (row.base_commit, row.head_commit)
        return PullRequestContents(
            row,
            await self._judgements(row),
            await self.reader.commits(*ends),
            await self.reader.commit_count(*ends),
            await self.reader.change(*ends),
        )

    async def file(self, number: int, side: Literal["before", "after"], path: str, *, limit: int) -> bytes | None:
        """Returns a file as it is before or after the change; None where there is none, or it is larger than `limit`.

        Raises:
            PullRequestNotFoundError: there is none of this number.
        """
        row = await self._get(number)
        return await self.reader.file(row.base_commit if side == "before" else row.head_commit, path, limit=limit)

    async def close(self, number: int, *, by: str) -> None:
        async with self._lock:
            row = await self._refresh(await self._get(number))
            if row.state is PullRequestState.OPEN:
                await self._end(row.number, PullRequestState.CLOSED, by=by)

    async def judge(self, number: int, judgement: Judgement) -> None:
        """Records what a reviewer or a check says of the newest commit, in place of what it said before.

        Raises:
            DecisionError: with a message for the page.
        """
        kind = next(name for name, outcomes in _KINDS.items() if isinstance(judgement.outcome, outcomes))
        words = shortened(judgement.words, _LONGEST_WORDS)
        of_others = (number, judgement.head, kind, judgement.author)
        async with self._lock:
            _require_newest(await self._refresh(await self._get(number)), judgement.head)
            [(count,)] = await self._database.rows(
                "SELECT count(*) FROM judgements WHERE number = ? AND head = ? AND kind = ? AND author != ?", of_others
            )
            if count >= _MOST_OF_A_KIND:
                raise DecisionError(f"A commit has at most {_MOST_OF_A_KIND} {kind}s, each under a name of its own.")
            await self._database.execute(
                "DELETE FROM judgements WHERE number = ?1 AND head != ?2 AND rowid NOT IN "
                "(SELECT rowid FROM judgements WHERE number = ?1 AND head != ?2 ORDER BY judged_at DESC LIMIT ?3)",
                (number, judgement.head, _MOST_JUDGEMENTS),
            )
            await self._database.execute(
                "INSERT INTO judgements VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "outcome = excluded.outcome, words = excluded.words",
                (number, judgement.head, kind, judgement.author, judgement.outcome.value, words, self._iso_now()),
            )

    async def merge(self, number: int, *, head: str, by: str) -> None:
        """Merges into the base branch and pushes it. Does nothing if it was merged before.

        `head` is the commit that the person has seen.

        Raises:
            DecisionError: with a message for the page; nothing was changed.
        """
        async with self._lock:
            row = await self._refresh(await self._get(number))
            if row.state is PullRequestState.MERGED:
                return
            _require_newest(row, head)
            message = f"Merge pull request #{row.number}: {row.title}\n\nMerged-by: {by}\n"
            base, newest, _ = await self._fetched(row)
            await self._push_merge(row.head_commit, base, newest, message)
            await self._end(row.number, PullRequestState.MERGED, by=by)

    async def delete_ended(self, age: timedelta) -> int:
        """Forgets up to 100 that were merged or closed at least this long ago; returns how many."""
        rows = await self._database.rows(
            "SELECT number FROM pull_requests WHERE state != 'open' AND ended_at <= ? LIMIT 100",
            ((self._now() - age).astimezone(UTC).isoformat(),),
        )
        for number in (row["number"] for row in rows):
            async with self._lock:
                await self._mirror.run("update-ref", "-d", f"refs/pulls/{number}/head")
                await self._database.execute("DELETE FROM pull_requests WHERE number = ?", (number,))
        return len(rows)

    async def _get(self, number: int) -> PullRequestRow:
        """Returns a pull request. Raises PullRequestNotFoundError."""
        for row in await self._database.rows("SELECT * FROM pull_requests WHERE number = ?", (number,)):
            return _from_row(row)
        raise PullRequestNotFoundError("there is no pull request of this number")

    async def _newest(self, branch: str) -> PullRequestRow | None:
        rows = await self._database.rows(
            "SELECT * FROM pull_requests WHERE branch = ? ORDER BY number DESC LIMIT 1", (branch,)
        )
        return next(map(_from_row, rows), None)

    async def _judgements(self, row: PullRequestRow) -> tuple[Judgement, ...]:
        rows = await self._database.rows(
            "SELECT head, author, kind, outcome, words FROM judgements WHERE number = ? "
            "ORDER BY head = ? DESC, judged_at, kind, author LIMIT ?",
            (row.number, row.head_commit, _MOST_JUDGEMENTS),
        )
        return tuple(Judgement(head, author, _KINDS[kind](said), words) for head, author, kind, said, words in rows)

    async def _end(self, number: int, state: PullRequestState, *, by: str | None) -> None:
        """Records that it was merged or closed, when, and by whom."""
        await self._database.execute(
            "UPDATE pull_requests SET state = ?, ended_at = ?, ended_by = ? WHERE number = ?",
            (state.value, self._iso_now(), by, number),
        )
        self._looked_at.pop(number, None)

    def _iso_now(self) -> str:
        return self._now().astimezone(UTC).isoformat()

    async def _refresh(self, row: PullRequestRow) -> PullRequestRow:
        """Catches up with what was pushed; what is known is still shown while the repository is out of reach."""
        if row.state is not PullRequestState.OPEN:
            return row
        try:
            _, base, newest = await self._fetched(row)
        except GitError:
            return row
        head = newest or row.head_commit  # somebody deleted the branch
        parted = await self._mirror.merge_base(base, head) or base
        merged = parted == head
        start = row.base_commit if merged else parted
        await self._keep_commits(row.number, head)
        await self._database.execute(
            "UPDATE pull_requests SET base_commit = ?, head_commit = ? WHERE number = ?", (start, head, row.number)
        )
        if merged:
            await self._end(row.number, PullRequestState.MERGED, by=None)
        return await self._get(row.number)

    async def _fetched(self, row: PullRequestRow) -> tuple[str, str, str | None]:
        """Returns the branch that it is for, or, where that is gone, the base as it is called now; its newest commit;
        and that of its own branch, if it exists.
        """
        try:
            return row.base, *await self._fetch(row.base, row.branch)
        except NoSuchBranchError:
            return self._base.name, *await self._fetch(self._base.name, row.branch)

    async def _fetch(self, base: str, branch: str) -> tuple[str, str | None]:
        """Returns the newest commits of two branches; None for the second if it does not exist."""
        tips = await self._mirror.fetch(base, branch)
        return tips[base].commit, tips[branch].commit if branch in tips else None

    async def _keep_commits(self, number: int, head: str) -> None:
        """Keeps a pull request's commits even if its branch is deleted."""
        await self._mirror.run("update-ref", f"refs/pulls/{number}/head", head)

    async def _push_merge(self, head: str, base: str, newest: str, message: str) -> None:
        """Merges a commit into `newest`, the newest commit of the base branch, without a working copy, and pushes it.

        Raises:
            DecisionError: nothing was changed; the message is for the page.
            GitError: the repository is unreachable.
        """
        try:
            merged = await self._mirror.merge(newest, head)
        except GitError as error:
            raise DecisionError(f"git could not merge this: {error}") from error
        if merged.conflicts:
            raise DecisionError(
                f"This cannot be merged automatically: {base} has changed the same lines in "
                f"{', '.join(merged.conflicts[:10])}. "
                "Merge it by hand with git, or ask for the change again in a new job."
            )
        commit = await self._mirror.commit((newest, head), merged.tree, message)
        pushed = await self._mirror.git.push(self._mirror.directory, commit, base)
        if pushed.exit_code:
            raise DecisionError(_push_message(pushed.errors, base))

    def _as_pull_request(self, row: PullRequestRow) -> OpenedPullRequest:
        return OpenedPullRequest(row.number, f"{self._public_url}/pulls/{row.number}", row.branch, row.state)


def _require_newest(row: PullRequestRow, head: str) -> None:
    """Raises DecisionError if somebody who decides on this commit has seen something else than what is there."""
    if row.state is not PullRequestState.OPEN:
        raise DecisionError(f"This pull request is {row.state.value}, so nothing more can be decided here.")
    if row.head_commit != head:
        raise DecisionError("The branch has changed since you opened this page. Look at it again, then decide.")


def _push_message(errors: str, base: str) -> str:
    if "non-fast-forward" in errors or "fetch first" in errors or "cannot lock ref" in errors:
        return f"{base} has just changed. Please try again."
    if "unstaged changes" in errors or "uncommitted" in errors or "Working directory" in errors:
        return (
            f"The repository's working copy of {base} has changes that are not committed. Commit them, then try again."
        )
    return f"The repository did not take the merge: {' '.join(errors.split())[-300:]}"


def _from_row(row: aiosqlite.Row) -> PullRequestRow:
    created_at, ended_at = (row[name] and datetime.fromisoformat(row[name]) for name in ("created_at", "ended_at"))
    state = PullRequestState(row["state"])
    return PullRequestRow(**{**dict(row), "created_at": created_at, "ended_at": ended_at, "state": state})
