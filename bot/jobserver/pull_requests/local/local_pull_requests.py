"""Local pull requests: recorded in a table, with their commits in a mirror of the repository."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import quote

from sqlalchemy import RowMapping, bindparam, delete, func, select, tuple_, update

from bot.codehosts.pull_request import Check, CheckOutcome, PullRequest, Review, Verdict
from bot.jobapi.models import PullRequestState, Requester
from bot.jobserver.documents import PICTURE_FORMATS
from bot.jobserver.errors import DecisionError, GitError, NoSuchBranchError, PullRequestNotFoundError, PushRejectedError
from bot.jobserver.pull_requests.interface import NewPullRequest, OpenedPullRequest
from bot.jobserver.pull_requests.local.contents import Commit, ContentsReader
from bot.jobserver.repository.listings import PullRequestChange
from bot.jobserver.repository.mirror import Mirror, TreeSnapshot
from bot.jobserver.store.database import Database, Session, transaction
from bot.jobserver.store.tables import judgements, local_pull_requests
from bot.jobserver.text import shortened
from bot.queue.transaction import adding, replacing

_FETCH_EVERY_S = 30.0
"""How often at most git is asked whether an open pull request was merged by hand."""
LIST_LENGTH = 100
"""Pull requests on the page that lists them."""
_DESCRIPTION_LIMIT = 200_000
_MOST_OF_A_KIND, _MOST_JUDGEMENTS, _LONGEST_WORDS = 100, 200, 4_000
"""Checks, and reviews, of one commit; judgements of earlier commits, and of all that are shown; characters of each."""
_ADD = adding(local_pull_requests)
_JUDGE = replacing(judgements, "outcome", "words")
_KINDS: Mapping[str, type[Verdict | CheckOutcome]] = {"review": Verdict, "check": CheckOutcome}


@dataclass(frozen=True)
class PullRequestRow:
    """A stored pull request; the two commits are the ends of its diff.

    `ended_by` is who merged or closed it on its page; None where that is not known, as for a merge by hand.
    """

    number: int
    project_id: str
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

    @property
    def page(self) -> str:
        """The path of its page."""
        return f"{pages_of(self.project_id)}/{self.number}"


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

    def __init__(self, database: Database, project_id: str, mirror: Mirror, *, base: str, public_url: str) -> None:
        self.reader = ContentsReader(mirror)
        self.database = database
        self._project_id = project_id
        columns = local_pull_requests.c
        self._own = columns.project_id == project_id
        self._numbered = select(local_pull_requests).where(self._own, columns.number == bindparam("number"))
        of_branch = select(local_pull_requests).where(self._own, columns.branch == bindparam("branch"))
        self._of_branch = of_branch.order_by(columns.number.desc()).limit(1)
        self._mirror = mirror
        self._base = base
        self._public_url = public_url
        self._lock = asyncio.Lock()
        self._looked_at: dict[int, float] = {}
        """When git was asked about the open ones, in monotonic seconds."""

    def picture_link(self, link: str, commit: str, path: str) -> str:  # noqa: ARG002 - the pages show the newest
        """See PullRequests. Of formats that can contain scripts, the pages show only the name."""
        return f"{link}/after/{quote(path)}" if path.lower().endswith(PICTURE_FORMATS) else link

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
            base, head = await self._pushed_from_here(new) or await self._fetch(self._base, new.branch)
            if head is None:
                raise NoSuchBranchError(f"the branch {new.branch} is not in the repository")
            start = await self._mirror.merge_base(base, head) or base
            row = await self._insert(new, start, head)
            await self._keep_commits(row.number, head)
            self._looked_at[row.number] = time.monotonic()
            return self._as_pull_request(row)

    async def add_extras(self, _pull_request: OpenedPullRequest, _requester: Requester | None) -> tuple[str, ...]:
        """There are none here."""
        return ()

    async def update(self, pull_request: OpenedPullRequest, addition: str) -> None:
        async with self._lock:
            await self._describe(pull_request.number, addition)
            await self._refresh(await self._get(pull_request.number))

    async def list(self) -> tuple[PullRequestRow, ...]:
        """Returns the open ones, then the others, the newest of each first."""
        columns = local_pull_requests.c
        is_ended = columns.state != PullRequestState.OPEN
        newest = select(local_pull_requests).where(self._own).order_by(is_ended, columns.number.desc())
        return tuple(map(_from_row, await self.database.rows(newest.limit(LIST_LENGTH))))

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

    async def file(self, number: int, side: Literal["before", "after"], path: str) -> bytes | None:
        """Returns a file as it is before or after the change; None where there is none, or it is larger than 5 MB.

        Raises:
            PullRequestNotFoundError: there is none of this number.
        """
        row = await self._get(number)
        files = TreeSnapshot(self._mirror, row.base_commit if side == "before" else row.head_commit)
        return await asyncio.to_thread(files.read, PurePosixPath(path))

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
        async with self._lock:
            _require_newest(await self._refresh(await self._get(number)), judgement.head)
            await self._record(number, judgement)

    @transaction
    async def _record(self, session: Session, number: int, judgement: Judgement) -> None:
        kind = next(name for name, outcomes in _KINDS.items() if isinstance(judgement.outcome, outcomes))
        columns = judgements.c
        of_commit = (columns.number == number, columns.head == judgement.head, columns.kind == kind)
        others = select(func.count()).where(*of_commit, columns.author != judgement.author)
        if (await session.execute(others)).scalar_one() >= _MOST_OF_A_KIND:
            raise DecisionError(f"A commit has at most {_MOST_OF_A_KIND} {kind}s, each under a name of its own.")
        earlier = (columns.number == number, columns.head != judgement.head)
        key = tuple_(columns.head, columns.kind, columns.author)
        kept = select(*key.clauses).where(*earlier).order_by(columns.judged_at.desc()).limit(_MOST_JUDGEMENTS)
        await session.execute(delete(judgements).where(*earlier, key.not_in(kept)))
        values = {"number": number, "kind": kind, "judged_at": session.time()} | vars(judgement)
        await session.execute(_JUDGE, values | {"words": shortened(judgement.words, _LONGEST_WORDS)})

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
        ended = await self._ended(age)
        for number in ended:
            async with self._lock:
                await self.database.execute(delete(local_pull_requests).where(local_pull_requests.c.number == number))
        await self._mirror.forget("refs/pulls/", self._known_commits)  # also of those that another process deleted
        return len(ended)

    async def _known_commits(self) -> set[str]:
        rows = await self.database.rows(select(local_pull_requests.c.number))
        return {f"refs/pulls/{row['number']}/head" for row in rows}

    @transaction
    async def _ended(self, session: Session, age: timedelta) -> Sequence[int]:
        columns = local_pull_requests.c
        is_old = (columns.state != "open", columns.ended_at <= session.time(ago=age))
        return (await session.execute(select(columns.number).where(self._own, *is_old).limit(100))).scalars().all()

    async def _get(self, number: int) -> PullRequestRow:
        """Returns a pull request. Raises PullRequestNotFoundError."""
        for row in await self.database.rows(self._numbered, number=number):
            return _from_row(row)
        raise PullRequestNotFoundError("there is no pull request of this number")

    async def _newest(self, branch: str) -> PullRequestRow | None:
        return next(map(_from_row, await self.database.rows(self._of_branch, branch=branch)), None)

    @transaction
    async def _insert(self, session: Session, new: NewPullRequest, start: str, head: str) -> PullRequestRow:
        """Returns the new row, or that of the one that another process has opened meanwhile."""
        values = {
            "project_id": self._project_id,
            "branch": new.branch,
            "base": self._base,
            "title": new.title,
            "description": new.description,
            "state": PullRequestState.OPEN,
            "base_commit": start,
            "head_commit": head,
            "created_at": session.time(),
            "requested_by": new.requester and new.requester.name,
            "request_url": new.requester and new.requester.url,
        }
        await session.execute(_ADD, values)
        is_it = (local_pull_requests.c.branch == new.branch, local_pull_requests.c.state == PullRequestState.OPEN)
        [row] = await session.rows(select(local_pull_requests).where(*is_it))
        return _from_row(row)

    @transaction
    async def _describe(self, session: Session, number: int, addition: str) -> None:
        row = await session.first(self._numbered.with_for_update(), number=number)
        if row and addition not in row["description"] and len(row["description"]) < _DESCRIPTION_LIMIT:
            described = update(local_pull_requests).where(local_pull_requests.c.number == number)
            await session.execute(described.values(description=f"{row['description']}\n\n{addition}"))

    async def _judgements(self, row: PullRequestRow) -> tuple[Judgement, ...]:
        columns = judgements.c
        is_older = columns.head != row.head_commit
        found = select(columns.head, columns.author, columns.kind, columns.outcome, columns.words)
        newest_first = found.where(columns.number == row.number).order_by(
            is_older, columns.judged_at, columns.kind, columns.author
        )
        rows = await self.database.rows(newest_first.limit(_MOST_JUDGEMENTS))
        return tuple(
            Judgement(row["head"], row["author"], _KINDS[row["kind"]](row["outcome"]), row["words"]) for row in rows
        )

    @transaction
    async def _end(self, session: Session, number: int, state: PullRequestState, *, by: str | None) -> None:
        """Records that it was merged or closed, when, and by whom."""
        ending = update(local_pull_requests).where(local_pull_requests.c.number == number)
        if state is not PullRequestState.MERGED or by is None:  # another process may have merged it meanwhile
            ending = ending.where(local_pull_requests.c.state == PullRequestState.OPEN)
        await session.execute(ending.values(state=state, ended_at=session.time(), ended_by=by))
        self._looked_at.pop(number, None)

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
        moved = update(local_pull_requests).where(local_pull_requests.c.number == row.number)
        await self.database.execute(moved.values(base_commit=start, head_commit=head))
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
            return self._base, *await self._fetch(self._base, row.branch)

    async def _fetch(self, base: str, branch: str) -> tuple[str, str | None]:
        """Returns the newest commits of two branches; None for the second if it does not exist."""
        tips = await self._mirror.fetch(base, branch)
        return tips[base].commit, tips[branch].commit if branch in tips else None

    async def _pushed_from_here(self, new: NewPullRequest) -> tuple[str, str] | None:
        """Returns the newest commits of the base and the branch if the mirror has the one that was just pushed.

        What another process or machine pushed is not in this mirror, or an older commit is: then git has to be asked.
        """
        tips = await self._mirror.tips(self._base, new.branch) if new.commit else {}
        base, head = tips.get(self._base), tips.get(new.branch)
        return (base.commit, head.commit) if base and head and head.commit == new.commit else None

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
        try:
            await self._mirror.git.push(self._mirror.directory, commit, base, newest)
        except PushRejectedError:
            raise DecisionError(f"{base} has just changed. Please try again.") from None
        except GitError as error:
            raise DecisionError(f"This was not merged: {error}") from None

    def _as_pull_request(self, row: PullRequestRow) -> OpenedPullRequest:
        return OpenedPullRequest(row.number, f"{self._public_url}{row.page}", row.branch, row.state)


def pages_of(project_id: str) -> str:
    """Returns the path of a project's list of pull requests."""
    return f"/{quote(project_id, safe='')}/pulls"


async def project_of(database: Database, number: int) -> str | None:
    """Returns the project of a pull request: addresses did not name it before."""
    rows = await database.rows(select(local_pull_requests.c.project_id).where(local_pull_requests.c.number == number))
    return next((row["project_id"] for row in rows), None)


def _require_newest(row: PullRequestRow, head: str) -> None:
    """Raises DecisionError if somebody who decides on this commit has seen something else than what is there."""
    if row.state is not PullRequestState.OPEN:
        raise DecisionError(f"This pull request is {row.state.value}, so nothing more can be decided here.")
    if row.head_commit != head:
        raise DecisionError("The branch has changed since you opened this page. Look at it again, then decide.")


def _from_row(row: RowMapping) -> PullRequestRow:
    created_at, ended_at = (row[name] and datetime.fromisoformat(row[name]) for name in ("created_at", "ended_at"))
    state = PullRequestState(row["state"])
    return PullRequestRow(**{**dict(row), "created_at": created_at, "ended_at": ended_at, "state": state})
