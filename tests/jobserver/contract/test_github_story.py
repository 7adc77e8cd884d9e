"""A job server whose repository and pull requests are at GitHub, from the prompt to the merge and after."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from support.servers import github_server_faults as faults
from support.servers.github_server import GitHubServer, github_server
from support.servers.github_server_state import ALL_PERMISSIONS, TOKEN
from support.worlds.github_world import as_app
from support.worlds.jobserver_world import JobServerWorld, running, until

from bot.jobserver.errors import JobServerError


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[GitHubServer]:
    async with github_server(tmp_path / "github") as made:
        yield made


def world(server: GitHubServer, tmp_path: Path, identity: dict[str, Any]) -> Any:
    return running(server.repository.git.path, tmp_path / "data", address=server.repository_url, **identity)


@pytest.mark.parametrize(
    "identity",
    [{"github_token": SecretStr(TOKEN)}, pytest.param(as_app(), marks=pytest.mark.full)],
    ids=["token", "app"],
)
async def test_a_job_becomes_a_pull_request_and_a_follow_up_after_merge_another(
    server: GitHubServer, tmp_path: Path, identity: dict[str, Any]
) -> None:
    async with world(server, tmp_path, identity) as jobs:
        made: JobServerWorld = jobs
        job = await made.done('Replace "colour" with "color"')
        assert job["prLink"] == f"{server.url}/acme/docs/pull/1"
        (await made.message(job["id"], 'Replace "name" with "code"')).raise_for_status()
        assert (await made.ended(job["id"]))["prLink"] == f"{server.url}/acme/docs/pull/1"
        assert '> Replace "name" with "code"' in server.pull_request(1).body
        server.merge(1)
        (await made.message(job["id"], 'Replace "Every" with "Each"')).raise_for_status()
        assert (await made.ended(job["id"]))["prLink"] == f"{server.url}/acme/docs/pull/2"
    assert server.repository.git.git("show", f"{server.pull_request(2).sha}:colours.md") == "Each color has a code."
    kept = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert [path for path in kept if b"planted-secret" in path.read_bytes()] == []


async def test_an_invalid_token_stops_the_start_with_a_reason(server: GitHubServer, tmp_path: Path) -> None:
    with pytest.raises(JobServerError, match="the repository's host does not accept the token"):
        async with world(server, tmp_path, {"github_token": SecretStr("planted-secret-old")}):
            pass


async def test_a_refused_push_fails_the_job_with_a_reason(server: GitHubServer, tmp_path: Path) -> None:
    server.repository.git.protect("pagehand/*")
    async with world(server, tmp_path, {"github_token": SecretStr(TOKEN)}) as made:
        job = await made.done('Replace "colour" with "color"')
        assert job["status"] == "failed"
        assert "the branch is protected at its host" in made.log(job["id"])


async def test_a_concurrent_push_of_another_person_is_kept(server: GitHubServer, tmp_path: Path) -> None:
    git = server.repository.git
    async with world(server, tmp_path, {"github_token": SecretStr(TOKEN)}) as made:
        job = await made.done('Replace "colour" with "color"')
        branch = server.pull_request(1).branch

        def push_first() -> None:
            server.before_push = lambda: None
            git.commit(branch, {"theirs.md": "Theirs.\n"}, "A person's commit")

        server.before_push = push_first
        (await made.message(job["id"], 'Replace "name" with "code"')).raise_for_status()
        assert (await made.ended(job["id"]))["status"] == "completed"
    assert git.git("show", f"{branch}:theirs.md") == "Theirs."
    assert git.git("show", f"{branch}:colours.md") == "Every color has a code."


async def test_a_rejected_commit_does_not_come_back(server: GitHubServer, tmp_path: Path) -> None:
    async with world(server, tmp_path, {"github_token": SecretStr(TOKEN)}) as made:
        job = await made.done('Replace "colour" with "color"')
        server.close(1)
        (await made.message(job["id"], 'Replace "name" with "code"')).raise_for_status()
        assert (await made.ended(job["id"]))["prLink"].endswith("/pull/2")
    second = server.pull_request(2)
    assert second.branch != server.pull_request(1).branch
    assert server.repository.git.git("show", f"{second.sha}:colours.md") == "Every colour has a code."


async def test_a_deleted_merged_branch_is_no_obstacle(server: GitHubServer, tmp_path: Path) -> None:
    async with world(server, tmp_path, {"github_token": SecretStr(TOKEN)}) as made:
        job = await made.done('Replace "colour" with "color"')
        server.merge(1, delete_branch=True)
        (await made.message(job["id"], 'Replace "name" with "code"')).raise_for_status()
        assert (await made.ended(job["id"]))["prLink"].endswith("/pull/2")


async def test_a_repository_renamed_meanwhile_keeps_working(server: GitHubServer, tmp_path: Path) -> None:
    async with world(server, tmp_path, as_app()) as made:
        job = await made.done('Replace "colour" with "color"')
        server.repository.rename("acme-inc", "handbook")
        (await made.message(job["id"], 'Replace "name" with "code"')).raise_for_status()
        assert (await made.ended(job["id"]))["status"] == "completed"
    assert '> Replace "name" with "code"' in server.pull_request(1).body


async def test_a_refused_pull_request_is_pending_and_opened_at_the_next_start(
    server: GitHubServer, tmp_path: Path
) -> None:
    server.tokens[TOKEN] -= {"pull_requests:write"}
    async with world(server, tmp_path, {"github_token": SecretStr(TOKEN)}) as made:
        job = await made.done('Replace "colour" with "color"')
        assert (job["status"], job["prLink"], job["details"]["pullRequest"]["state"]) == ("completed", None, "pending")
        assert "give it the permission Pull requests: read and write" in job["details"]["pullRequest"]["reason"]
        assert "give it the permission Pull requests: read and write" in made.log(job["id"])
        (await made.message(job["id"], 'Replace "zebra" with "horse"')).raise_for_status()
        assert (await made.ended(job["id"]))["details"]["pullRequest"]["state"] == "pending"
    server.tokens[TOKEN] = ALL_PERMISSIONS
    async with world(server, tmp_path, {"github_token": SecretStr(TOKEN), "labels": ("docs",)}) as made:

        async def link() -> str:
            return str((await made.job(job["id"]))["prLink"] or "")

        assert (await until(link)).endswith("/pull/1")
    assert '> Replace "colour" with "color"' in server.pull_request(1).body
    assert server.pull_request(1).labels == ["docs"]


async def test_a_secondary_limit_costs_an_instruction_nothing(server: GitHubServer, tmp_path: Path) -> None:
    """GitHub refuses once, and the next instruction changes nothing: its pull request is opened anyway."""
    refused = faults.error(403, "You have been blocked from creating content")
    server.faults.arm("POST", "/repos/acme/docs/pulls", refused)
    async with world(server, tmp_path, {"github_token": SecretStr(TOKEN)}) as made:
        job = await made.done('Replace "colour" with "color"')
        assert job["details"]["pullRequest"]["state"] == "pending"
        (await made.message(job["id"], 'Replace "zebra" with "horse"')).raise_for_status()
        ended = await made.ended(job["id"])
        assert (ended["status"], ended["prLink"]) == ("completed", f"{server.url}/acme/docs/pull/1")
        assert ended["details"]["pullRequest"]["state"] == "open"
