"""The state of a pull request is current, and costs its host few calls."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from support.servers.github_server import github_server
from support.servers.github_server_state import TOKEN
from support.worlds.executor_world import ExecutorWorld, executing
from support.worlds.github_world import PassingTime, branch_with_a_commit, connected
from support.worlds.jobserver_world import make_bare, running

from bot.jobapi.models import AgentJob, PullRequestState
from bot.jobserver.errors import CodeHostError
from bot.jobserver.pipeline.propose import PullRequestStates
from bot.jobserver.pull_requests.interface import NewPullRequest
from bot.jobserver.repository.mirror import BaseBranch

PULL = "/repos/acme/docs/pulls/1"


def state_of(job: AgentJob) -> PullRequestState | None:
    assert job.details is not None
    assert job.details.pull_request is not None
    return job.details.pull_request.state


def looking(world: ExecutorWorld, patience: float = 20.0) -> PullRequestStates:
    return PullRequestStates(world.pull_requests, world.proposals, patience=patience)


async def test_a_merge_on_our_pages_shows_at_the_next_read(tmp_path: Path) -> None:
    """Nobody has to send another message for it."""
    bare = make_bare(tmp_path / "docs.git", {"colours.md": "Every colour has a name.\n"})
    async with running(bare, tmp_path / "data") as world:
        job = await world.done('Replace "colour" with "color"')
        assert job["details"]["pullRequest"]["state"] == "open"
        await world.press(job["prLink"], "merge")
        assert (await world.job(job["id"]))["details"]["pullRequest"]["state"] == "merged"


async def test_a_frequently_read_job_costs_github_two_calls_a_minute(tmp_path: Path) -> None:
    passing = PassingTime(time.time())
    async with github_server(tmp_path / "github") as server:
        branch_with_a_commit(server)
        async with connected(server, passing) as github:
            keeper = github.pull_requests(BaseBranch("main"))
            await keeper.open(NewPullRequest("pagehand/1", "Add a page", "Words."))
            for _ in range(60):
                passing.at += 1.0
                assert await keeper.state(1) is PullRequestState.OPEN
            assert server.count("GET", PULL) == 2
            server.merge(1)
            passing.at += 31.0
            assert await keeper.state(1) is PullRequestState.MERGED


async def test_github_states_are_current(tmp_path: Path) -> None:
    """A restarted server does not know the state yet, and asks."""
    async with github_server(tmp_path / "github") as server:
        identity: dict[str, Any] = {"github_token": SecretStr(TOKEN)}
        address = server.repository_url
        async with running(server.repository.git.path, tmp_path / "data", address=address, **identity) as world:
            job = await world.done('Replace "colour" with "color"')
        server.close(1)
        async with running(server.repository.git.path, tmp_path / "data", address=address, **identity) as world:
            assert (await world.job(job["id"]))["details"]["pullRequest"]["state"] == "closed"


@pytest.mark.full
async def test_after_a_rename_at_github_the_last_known_state_stays(tmp_path: Path) -> None:
    """The log says which setting needs the new address."""
    async with github_server(tmp_path / "github") as server:
        identity: dict[str, Any] = {"github_token": SecretStr(TOKEN)}
        address = server.repository_url
        async with running(server.repository.git.path, tmp_path / "data", address=address, **identity) as world:
            job = await world.done('Replace "colour" with "color"')
        server.repository.rename("acme-inc", "handbook")
        server.close(1)
        async with running(server.repository.git.path, tmp_path / "data", address=address, **identity) as world:
            assert (await world.job(job["id"]))["details"]["pullRequest"]["state"] == "open"


async def test_concurrent_readers_share_one_lookup_that_is_recorded(tmp_path: Path) -> None:
    """A team looks at one card."""
    async with executing(tmp_path) as world:
        job, states = await world.done("one"), looking(world)
        world.pull_requests.end(PullRequestState.MERGED)
        readers = [asyncio.create_task(states.as_of_now(job)) for _ in range(50)]
        await asyncio.sleep(0)
        world.pull_requests.looking.set()
        assert {state_of(await reader) for reader in readers} == {PullRequestState.MERGED}
        assert world.pull_requests.looks == 1
        after = await world.store.get("docs", job.id)
        assert state_of(after) is PullRequestState.MERGED
        await states.as_of_now(after)
        assert world.pull_requests.looks == 1, "a merged one stays merged"


async def test_a_slow_host_delays_no_reader(tmp_path: Path) -> None:
    """The job is shown as known, and the next reader gets the result."""
    async with executing(tmp_path) as world:
        job, states = await world.done("one"), looking(world, patience=0.01)
        world.pull_requests.end(PullRequestState.CLOSED)
        assert await states.as_of_now(job) == job
        world.pull_requests.looking.set()
        async with asyncio.timeout(20):
            while state_of(await world.store.get("docs", job.id)) is not PullRequestState.CLOSED:  # noqa: ASYNC110 - a row
                await asyncio.sleep(0.01)
        await states.stop()


async def test_an_unreachable_host_changes_nothing(tmp_path: Path) -> None:
    """Reading a job never fails because of GitHub."""
    async with executing(tmp_path) as world:
        job, states = await world.done("one"), looking(world)
        world.pull_requests.outage = CodeHostError("away")
        world.pull_requests.looking.set()
        assert await states.as_of_now(job) == job


@pytest.mark.parametrize("state", [PullRequestState.PENDING, PullRequestState.MERGED])
async def test_final_states_are_not_looked_up(tmp_path: Path, state: PullRequestState) -> None:
    """Most jobs that are read were merged long ago."""
    async with executing(tmp_path) as world:
        job = await world.done("one")
        assert job.details is not None
        told = {
            "pull_request": job.details.pull_request and job.details.pull_request.model_copy(update={"state": state})
        }
        known = job.model_copy(update={"details": job.details.model_copy(update=told)})
        assert await looking(world).as_of_now(known) == known
        assert world.pull_requests.looks == 0
