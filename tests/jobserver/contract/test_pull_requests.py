"""What every host of pull requests does: the local one and GitHub."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import insert, select
from support.servers.github_server import github_server
from support.servers.github_server_git import BareRepository
from support.worlds.github_world import connected
from support.worlds.jobserver_world import KEY, git, jobs_in, make_bare, push_to

from bot.codehosts.pull_request import CheckOutcome, Verdict
from bot.jobapi.models import PullRequestState, Requester
from bot.jobserver.errors import DecisionError, PullRequestNotFoundError
from bot.jobserver.pull_requests.github.github_pull_requests import GitHubPullRequests
from bot.jobserver.pull_requests.interface import NewPullRequest
from bot.jobserver.pull_requests.local.local_pull_requests import (
    LIST_LENGTH,
    Judgement,
    LocalPullRequests,
)
from bot.jobserver.repository.git import Git
from bot.jobserver.repository.mirror import Mirror, Tip
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.store.database import Database
from bot.jobserver.store.tables import judgements, local_pull_requests

BRANCH = "pagehand/1"
NEW = NewPullRequest(BRANCH, "Add a page", "> Add a page\n\nAdded new.md.", Requester(name="Ada"))


@dataclass(frozen=True)
class Kept:
    """A host, the repository, and what a person does there directly."""

    keeper: GitHubPullRequests | LocalPullRequests
    repository: BareRepository
    merge: Callable[[int], object]
    close: Callable[[int], Awaitable[object]]


async def local(tmp_path: Path, stack: AsyncExitStack) -> Kept:
    repository = BareRepository.make(tmp_path / "docs.git", {"colours.md": "Every colour has a name.\n"})
    settings = JobServerSettings(repository=str(repository.path), api_key=SecretStr("planted-key-of-sixteen"))
    database = await stack.enter_async_context(Database(jobs_in(tmp_path)))
    mirror = Mirror(Git.for_settings(settings), tmp_path / "mirror.git")
    keeper = LocalPullRequests(database, "docs", mirror, base="main", public_url="http://127.0.0.1:8765")

    async def close(number: int) -> None:
        await keeper.close(number, by="Ada")

    return Kept(keeper, repository, lambda _: repository.merge(BRANCH, "main", "Merged by hand"), close)


async def at_github(tmp_path: Path, stack: AsyncExitStack) -> Kept:
    server = await stack.enter_async_context(github_server(tmp_path / "github"))
    connection = await stack.enter_async_context(connected(server))

    async def close(number: int) -> None:
        server.close(number)

    return Kept(connection.pull_requests("main"), server.repository.git, server.merge, close)


@pytest.fixture(params=[local, at_github], ids=["local", "github"])
async def kept(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kept]:
    async with AsyncExitStack() as stack:
        made: Kept = await request.param(tmp_path, stack)
        made.repository.commit(BRANCH, {"new.md": "New.\n"}, "Add a page")
        yield made


class TestEveryKeeper:
    async def test_an_opened_pull_request_has_number_link_and_state(self, kept: Kept) -> None:
        assert await kept.keeper.find(BRANCH) is None
        opened = await kept.keeper.open(NEW)
        assert (opened.number, opened.branch, opened.state) == (1, BRANCH, PullRequestState.OPEN)
        assert opened.link.startswith("http://127.0.0.1:")
        assert await kept.keeper.find(BRANCH) == opened
        assert await kept.keeper.find("pagehand/11") is None

    async def test_a_merge_is_seen_and_the_next_pull_request_is_another(self, kept: Kept) -> None:
        opened = await kept.keeper.open(NEW)
        kept.merge(opened.number)
        found = await kept.keeper.find(BRANCH)
        assert found
        assert (found.number, found.state) == (opened.number, PullRequestState.MERGED)
        kept.repository.commit(BRANCH, {"more.md": "More.\n"}, "Add another page")
        again = await kept.keeper.open(NEW)
        assert again.number != opened.number
        assert await kept.keeper.find(BRANCH) == again
        await kept.close(again.number)
        found = await kept.keeper.find(BRANCH)
        assert found
        assert (found.number, found.state) == (again.number, PullRequestState.CLOSED)

    async def test_it_is_read_with_its_newest_commit(self, kept: Kept) -> None:
        opened = await kept.keeper.open(NEW)
        read = await kept.keeper.read(opened.number)
        known = (read.link, read.state, read.title, read.head, read.base)
        assert known == (opened.link, PullRequestState.OPEN, NEW.title, kept.repository.head(BRANCH), "main")


KEPT = timedelta(days=90)
CHANGE = NewPullRequest("change", "A change", "> Change it", Requester(name="Ben", url="https://slack.example/p1"))


@dataclass
class Clock:
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Local:
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
async def opened(repository: Path, data: Path, mirror: Mirror | None = None) -> AsyncIterator[Local]:
    mirror, clock = mirror or Mirror(git_for(repository), data / "mirror.git"), Clock()
    async with Database(jobs_in(data), now=clock) as database:
        pull_requests = LocalPullRequests(database, "docs", mirror, base="main", public_url="http://here")
        yield Local(pull_requests, clock, mirror.directory)


async def test_a_branch_has_one_open_pull_request_and_each_is_listed(repository: Path, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "data") as kept:
        first = await kept.pull_requests.open(CHANGE)
        assert await kept.pull_requests.open(CHANGE) == first
        await kept.pull_requests.close(first.number, by="Ada")
        await kept.pull_requests.open(CHANGE)
        rows = await kept.pull_requests.list()
        assert [(row.number, row.ended_by, row.requested_by, row.request_url) for row in rows] == [
            (2, None, "Ben", "https://slack.example/p1"),
            (1, "Ada", "Ben", "https://slack.example/p1"),
        ]


async def test_two_processes_open_the_same_pull_request(repository: Path, tmp_path: Path) -> None:
    mirror, data = Mirror(git_for(repository), tmp_path / "data" / "mirror.git"), tmp_path / "data"
    async with opened(repository, data, mirror) as kept, opened(repository, data, mirror) as other:
        [first, second] = await asyncio.gather(*(each.pull_requests.open(CHANGE) for each in (kept, other)))
        assert first == second


async def test_who_merged_it_is_known_though_another_process_sees_the_merge_by_itself(
    repository: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    slow = SlowMirror(git_for(repository), data / "second.git")
    async with opened(repository, data) as kept, opened(repository, data, slow) as other:
        found = await kept.pull_requests.open(CHANGE)
        head = (await kept.pull_requests.contents(found.number)).row.head_commit
        closing = asyncio.create_task(other.pull_requests.close(found.number, by="Ben"))
        await slow.is_asked.wait()
        await kept.pull_requests.merge(found.number, head=head, by="Ada")
        slow.goes_on.set()
        await closing
        [row] = await kept.pull_requests.list()
        assert (row.state, row.ended_by) == (PullRequestState.MERGED, "Ada")


async def test_a_branch_without_a_pull_request_waits_for_no_fetch(repository: Path, tmp_path: Path) -> None:
    """Every new job asks for its own, while others are opened."""
    mirror = SlowMirror(git_for(repository), tmp_path / "data" / "mirror.git")
    async with opened(repository, tmp_path / "data", mirror) as kept, asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        opening = tasks.create_task(kept.pull_requests.open(CHANGE))
        await mirror.is_asked.wait()
        assert await kept.pull_requests.find("another") is None
        mirror.goes_on.set()
        assert (await opening).number == 1


def head_of(repository: Path) -> str:
    return git(repository, "rev-parse", "change").strip()


async def test_what_was_just_pushed_from_here_is_opened_without_another_fetch(repository: Path, tmp_path: Path) -> None:
    mirror, head = SlowMirror(git_for(repository), tmp_path / "data" / "mirror.git"), head_of(repository)
    await Mirror.fetch(mirror, "main", "change")
    async with opened(repository, tmp_path / "data", mirror) as kept, asyncio.timeout(10):
        await kept.pull_requests.open(replace(CHANGE, commit=head))
        [row] = await kept.pull_requests.list()
        assert (row.head_commit, row.base_commit) == (head, git(repository, "rev-parse", "main").strip())
        assert not mirror.is_asked.is_set()


@pytest.mark.parametrize("fetched", [["main", "change"], ["main"]])
@pytest.mark.parametrize("is_known", [True, False])
async def test_no_older_commit_is_opened_where_another_machine_has_pushed(
    repository: Path, tmp_path: Path, fetched: list[str], *, is_known: bool
) -> None:
    """A mirror may have an older tip of the branch, or none; a retry cannot know what was pushed since."""
    mirror = Mirror(git_for(repository), tmp_path / "data" / "mirror.git")
    await mirror.fetch(*fetched)
    push_to(repository, "change", {"more.md": b"more\n"})
    async with opened(repository, tmp_path / "data", mirror) as kept:
        await kept.pull_requests.open(replace(CHANGE, commit=head_of(repository) if is_known else None))
        [row] = await kept.pull_requests.list()
        assert row.head_commit == head_of(repository)


async def test_a_base_that_is_new_in_the_settings_is_fetched(repository: Path, tmp_path: Path) -> None:
    mirror = Mirror(git_for(repository), tmp_path / "data" / "mirror.git")
    await mirror.fetch("change")
    async with opened(repository, tmp_path / "data", mirror) as kept:
        await kept.pull_requests.open(replace(CHANGE, commit=head_of(repository)))
        [row] = await kept.pull_requests.list()
        assert row.base_commit == git(repository, "rev-parse", "main").strip()


async def test_a_long_list_has_every_open_one_first(repository: Path, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "data") as kept:
        opened_first = await kept.pull_requests.open(CHANGE)
        alike = dict.fromkeys(("base", "title", "description", "base_commit", "head_commit"), "")
        alike |= {"project_id": "docs", "state": "closed", "created_at": "2026-01-01T00:00:00.000000Z"}
        closed = [alike | {"branch": f"change-{number}"} for number in range(2, LIST_LENGTH + 2)]
        await kept.pull_requests.database.execute(insert(local_pull_requests).values(closed))
        rows = await kept.pull_requests.list()
        assert [row.number for row in rows] == [opened_first.number, *range(LIST_LENGTH + 1, 2, -1)]


async def test_long_ended_pull_requests_are_deleted_with_their_commits(repository: Path, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "data") as kept:
        closed = await kept.pull_requests.open(CHANGE)
        head = head_of(repository)
        await kept.pull_requests.judge(closed.number, Judgement(head, "Ada", Verdict.CHANGES_REQUESTED))
        await kept.pull_requests.close(closed.number, by="Ada")
        kept.clock.now += KEPT
        async with opened(repository, tmp_path / "data", Mirror(git_for(repository), tmp_path / "other.git")) as other:
            opened_later = await kept.pull_requests.open(CHANGE)
            await other.pull_requests.find("change")
            other.clock.now += KEPT
            assert await other.pull_requests.delete_ended(KEPT) == 1, "in another process"
        assert await kept.pull_requests.delete_ended(KEPT) == 0
        with pytest.raises(PullRequestNotFoundError):
            await kept.pull_requests.contents(closed.number)
        assert (await kept.pull_requests.contents(opened_later.number)).change.file_count == 1
        refs = git(kept.mirror, "for-each-ref", "--format=%(refname)", "refs/pulls").split()
        assert refs == [f"refs/pulls/{opened_later.number}/head"]
        assert not await kept.pull_requests.database.rows(select(judgements))


async def test_a_flood_of_check_names_hides_no_review_and_ends(repository: Path, tmp_path: Path) -> None:
    async with opened(repository, tmp_path / "data") as kept:
        pulls, number = kept.pull_requests, (await kept.pull_requests.open(CHANGE)).number
        head = head_of(repository)

        async def flood(head: str, checks: int) -> None:
            alike = {"number": number, "head": head, "kind": "check", "outcome": "passed", "words": "", "judged_at": ""}
            rows = [alike | {"author": f"check {one}"} for one in range(1, checks + 1)]
            await pulls.database.execute(insert(judgements).values(rows))

        await flood(head, 100)
        await flood("f" * 40, 1_000)
        with pytest.raises(DecisionError, match="at most 100 checks"):
            await pulls.judge(number, Judgement(head, "one more", CheckOutcome.FAILED))
        await pulls.judge(number, Judgement(head, "check 100", CheckOutcome.FAILED))
        await pulls.judge(number, Judgement(head, "Ada", Verdict.CHANGES_REQUESTED))
        read = await pulls.read(number)
        assert [review.author for review in read.reviews] == ["Ada"]
        assert [check.name for check in read.checks if check.outcome is CheckOutcome.FAILED] == ["check 100"]
        assert len(await pulls.database.rows(select(judgements))) == 301
