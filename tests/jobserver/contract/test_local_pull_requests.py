"""Local pull requests in their database: through an update, and until they are deleted."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr
from support.worlds.jobserver_world import KEY, git, make_bare

from bot.jobapi.models import PullRequestState, Requester
from bot.jobserver.errors import PullRequestNotFoundError
from bot.jobserver.pull_requests.interface import NewPullRequest
from bot.jobserver.pull_requests.local.local_pull_requests import (
    LIST_LENGTH,
    STEPS,
    LocalPullRequests,
)
from bot.jobserver.repository.git import Git
from bot.jobserver.repository.mirror import BaseBranch, Mirror, Tip
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.store.database import Database

KEPT = timedelta(days=90)
NEW = NewPullRequest("change", "A change", "> Change it", Requester(name="Ben", url="https://slack.example/p1"))


@dataclass
class Clock:
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Kept:
    pull_requests: LocalPullRequests
    clock: Clock
    mirror: Path


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    repository = make_bare(tmp_path / "manual.git", {"a.md": "a\n"})
    copy = tmp_path / "manual.git-copy"
    git(copy, "checkout", "--quiet", "-b", "change")
    (copy / "a.md").write_text("b\n")
    git(copy, "commit", "--quiet", "--all", "-m", "Change")
    git(copy, "push", "--quiet", str(repository), "change")
    return repository


def git_for(repository: Path) -> Git:
    return Git.for_settings(JobServerSettings(repository=str(repository), api_key=SecretStr(KEY)))


class SlowMirror(Mirror):
    """Fetches on command."""

    def __init__(self, git: Git, directory: Path) -> None:
        super().__init__(git, directory)
        self.is_asked, self.goes_on = asyncio.Event(), asyncio.Event()

    async def fetch(self, branch: str, *more: str) -> Mapping[str, Tip]:
        self.is_asked.set()
        await self.goes_on.wait()
        return await super().fetch(branch, *more)


@asynccontextmanager
async def opened(repository: Path, data: Path, mirror: Mirror | None = None) -> AsyncIterator[Kept]:
    mirror, clock = mirror or Mirror(git_for(repository), data / "mirror.git"), Clock()
    async with Database(data / "pulls.sqlite3", STEPS) as database:
        pull_requests = LocalPullRequests(
            database, mirror, base=BaseBranch("main"), public_url="http://here", now=clock
        )
        yield Kept(pull_requests, clock, mirror.directory)


async def test_a_database_of_the_first_version_keeps_its_rows(repository: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    head = git(repository, "rev-parse", "change").strip()
    with closing(sqlite3.connect(data / "pulls.sqlite3", isolation_level=None)) as database:
        database.executescript(STEPS[0])
        database.execute("PRAGMA user_version = 1")
        row = ("change", "main", "Old", "Words", "closed", head, head, "2025-12-31T00:00:00+00:00")
        database.execute(
            "INSERT INTO pull_requests (branch, base, title, description, state, base_commit, head_commit, created_at, "
            "ended_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '2025-12-31T12:00:00+00:00')",
            row,
        )
    async with opened(repository, data) as kept:
        [old] = (await kept.pull_requests.list(None, 1)).rows
        assert (old.title, old.state, old.ended_by) == ("Old", PullRequestState.CLOSED, None)
        assert (await kept.pull_requests.open(NEW)).number == 2


async def test_a_branch_has_one_open_pull_request_and_the_newest_is_found(repository: Path, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "data") as kept:
        first = await kept.pull_requests.open(NEW)
        assert await kept.pull_requests.open(NEW) == first
        await kept.pull_requests.close(first.number, by="Ada")
        found = await kept.pull_requests.find("change")
        assert found is not None
        assert found.state is PullRequestState.CLOSED
        second = await kept.pull_requests.open(NEW)
        assert second.number == 2
        assert await kept.pull_requests.find("change") == second
        rows = (await kept.pull_requests.list(None, 1)).rows
        assert [(row.number, row.ended_by, row.requested_by, row.request_url) for row in rows] == [
            (2, None, "Ben", "https://slack.example/p1"),
            (1, "Ada", "Ben", "https://slack.example/p1"),
        ]


async def test_a_branch_without_a_pull_request_waits_for_no_fetch(repository: Path, tmp_path: Path) -> None:
    """Every new job asks for its own, while others are opened."""
    mirror = SlowMirror(git_for(repository), tmp_path / "data" / "mirror.git")
    async with opened(repository, tmp_path / "data", mirror) as kept, asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        opening = tasks.create_task(kept.pull_requests.open(NEW))
        await mirror.is_asked.wait()
        assert await kept.pull_requests.find("another") is None
        mirror.goes_on.set()
        assert (await opening).number == 1


async def test_the_list_is_paged(repository: Path, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "data") as kept:
        for number in range(1, LIST_LENGTH + 2):
            await kept.pull_requests._database.execute(
                "INSERT INTO pull_requests "
                "(branch, base, title, description, state, base_commit, head_commit, created_at) VALUES "
                "(?, 'main', 'A change', '', 'closed', '', '', '2026-01-01T00:00:00+00:00')",
                (f"change-{number}",),
            )
        pages = [await kept.pull_requests.list(PullRequestState.CLOSED, page) for page in (1, 2, 3)]
        assert [(page.page, page.pages, len(page.rows)) for page in pages] == [
            (1, 2, LIST_LENGTH),
            (2, 2, 1),
            (2, 2, 1),
        ]
        assert pages[0].counts[PullRequestState.CLOSED] == LIST_LENGTH + 1
        assert not (await kept.pull_requests.list(PullRequestState.OPEN, 1)).rows


async def test_long_ended_pull_requests_are_deleted_with_their_commits(repository: Path, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "data") as kept:
        closed = await kept.pull_requests.open(NEW)
        await kept.pull_requests.close(closed.number, by="Ada")
        kept.clock.now += KEPT
        opened_later = await kept.pull_requests.open(NEW)
        assert await kept.pull_requests.delete_ended(KEPT) == 1
        assert await kept.pull_requests.delete_ended(KEPT) == 0
        with pytest.raises(PullRequestNotFoundError):
            await kept.pull_requests.contents(closed.number)
        assert (await kept.pull_requests.contents(opened_later.number)).change.totals.files == 1
        refs = git(kept.mirror, "for-each-ref", "--format=%(refname)", "refs/pulls").split()
        assert refs == [f"refs/pulls/{opened_later.number}/head"]
