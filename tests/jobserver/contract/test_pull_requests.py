"""What every host of pull requests does: the local one and GitHub."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import SecretStr
from support.servers.github_server import github_server
from support.servers.github_server_git import BareRepository
from support.worlds.github_world import connected

from bot.jobapi.models import PullRequestState, Requester
from bot.jobserver.pull_requests.github.github_pull_requests import GitHubPullRequests
from bot.jobserver.pull_requests.interface import NewPullRequest
from bot.jobserver.pull_requests.local.local_pull_requests import STEPS, LocalPullRequests
from bot.jobserver.repository.git import Git
from bot.jobserver.repository.mirror import BaseBranch, Mirror
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.store.database import Database

BRANCH = "pagehand/1"
NEW = NewPullRequest(BRANCH, "Add a page", "> Add a page\n\nAdded new.md.", Requester(name="Ada"))


@dataclass(frozen=True)
class Kept:
    """A host, the repository, and what a person does there directly."""

    keeper: GitHubPullRequests | LocalPullRequests
    repository: BareRepository
    merge: Callable[[int], object]


async def local(tmp_path: Path, stack: AsyncExitStack) -> Kept:
    repository = BareRepository.make(tmp_path / "docs.git", {"colours.md": "Every colour has a name.\n"})
    settings = JobServerSettings(repository=str(repository.path), api_key=SecretStr("planted-key-of-sixteen"))
    database = await stack.enter_async_context(Database(tmp_path / "pulls.sqlite3", STEPS))
    mirror = Mirror(Git.for_settings(settings), tmp_path / "mirror.git")
    keeper = LocalPullRequests(
        database, mirror, base=BaseBranch("main"), public_url="http://127.0.0.1:8765", now=lambda: datetime.now(UTC)
    )
    return Kept(keeper, repository, lambda _: repository.merge(BRANCH, "main", "Merged by hand"))


async def at_github(tmp_path: Path, stack: AsyncExitStack) -> Kept:
    server = await stack.enter_async_context(github_server(tmp_path / "github"))
    connection = await stack.enter_async_context(connected(server))
    return Kept(connection.pull_requests(BaseBranch("main")), server.repository.git, server.merge)


@pytest.fixture(params=[local, at_github], ids=["local", "github"])
async def kept(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kept]:
    async with AsyncExitStack() as stack:
        made: Kept = await request.param(tmp_path, stack)
        made.repository.commit(BRANCH, {"new.md": "New.\n"}, "Add a page")
        yield made


class TestEveryKeeper:
    async def test_no_pull_request_is_found_before_one_is_opened(self, kept: Kept) -> None:
        assert await kept.keeper.find(BRANCH) is None

    async def test_an_opened_pull_request_has_number_link_and_state(self, kept: Kept) -> None:
        opened = await kept.keeper.open(NEW)
        assert (opened.number, opened.branch, opened.state) == (1, BRANCH, PullRequestState.OPEN)
        assert opened.link.startswith("http://127.0.0.1:")
        assert await kept.keeper.find(BRANCH) == opened
        assert await kept.keeper.find("pagehand/other") is None

    async def test_a_pull_request_can_be_updated_repeatedly(self, kept: Kept) -> None:
        opened = await kept.keeper.open(NEW)
        for _ in range(2):
            await kept.keeper.update(opened, "> make that shorter\n\nMade it shorter.")
        assert await kept.keeper.find(BRANCH) == opened

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

    async def test_it_is_read_with_its_newest_commit(self, kept: Kept) -> None:
        opened = await kept.keeper.open(NEW)
        read = await kept.keeper.read(opened.number)
        known = (read.link, read.state, read.title, read.head, read.base)
        assert known == (opened.link, PullRequestState.OPEN, NEW.title, kept.repository.head(BRANCH), "main")

    async def test_a_merged_one_is_read_as_merged(self, kept: Kept) -> None:
        opened = await kept.keeper.open(NEW)
        kept.merge(opened.number)
        await kept.keeper.find(BRANCH)
        assert (await kept.keeper.read(opened.number)).state is PullRequestState.MERGED
