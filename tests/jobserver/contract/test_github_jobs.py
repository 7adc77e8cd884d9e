"""A job server whose repository is at GitHub: git over http, with a credential that nobody else sees, and jobs."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pydantic import SecretStr
from support.oracles.process_watch import watching
from support.servers.github_server import GitHubServer, github_server
from support.servers.github_server_state import ALL_PERMISSIONS, TOKEN
from support.servers.relayed_model import upstream_server
from support.worlds.github_world import as_app, branch_with_a_commit, connected, jobs_at, settings_for
from support.worlds.jobserver_world import until

from bot.jobserver.errors import GitError, JobServerError
from bot.jobserver.pull_requests.github.repository_api import PersonalToken
from bot.jobserver.repository.credentials import GitCredentials
from bot.jobserver.repository.git import Git

BRANCH = "pagehand/1"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[GitHubServer]:
    async with github_server(tmp_path / "github") as made:
        yield made


async def git_for(server: GitHubServer, tmp_path: Path, **identity: Any) -> tuple[Git, Path]:
    """Returns git with credentials, and a clone with a commit to be pushed."""
    async with connected(server, **identity) as github:
        git = Git.for_settings(settings_for(server, **identity), github.credentials)
        return git, await clone_with_a_commit(git, tmp_path)


async def clone_with_a_commit(git: Git, tmp_path: Path) -> Path:
    copy = tmp_path / f"copy-{uuid.uuid4().hex}"
    await git.run(tmp_path, "clone", "--quiet", "--no-checkout", "--template=", "--", git.address, str(copy))
    await git.run(copy, "checkout", "--quiet", "-B", BRANCH, "refs/remotes/origin/main")
    (copy / "new.md").write_text("New.\n")
    await git.run(copy, "add", "--all")
    await git.run(copy, "commit", "--quiet", "-m", "Add a page")
    return copy


async def refused(git: Git, copy: Path) -> str:
    with pytest.raises(GitError) as caught:
        await git.push(copy, "HEAD", BRANCH)
    assert "planted-secret" not in str(caught.value)
    return str(caught.value)


def bytes_of(path: Path) -> bytes:
    """Returns nothing for a file that others on this machine deleted since it was found."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except FileNotFoundError:
        return b""


async def test_a_branch_is_cloned_and_pushed_without_a_trace_of_the_token(server: GitHubServer, tmp_path: Path) -> None:
    token = f"planted-secret-{uuid.uuid4().hex}"
    server.tokens = {token: ALL_PERMISSIONS}
    async with watching(token, tmp_path) as watched:
        git, copy = await git_for(server, tmp_path, github_token=SecretStr(token))
        await git.push(copy, "HEAD", BRANCH)
        assert await git.has_branch(copy, BRANCH)
    assert watched.found == []
    assert any("remote-http" in command for command in watched.commands)
    assert server.repository.git.head(BRANCH) == (await git.run(copy, "rev-parse", "HEAD")).strip()
    (tmp_path / "watched-text").unlink()
    for place in (str(tmp_path), "/dev/shm"):  # noqa: S108
        kept = [Path(folder, name) for folder, _, names in os.walk(place) for name in names]
        assert [path for path in kept if token.encode() in bytes_of(path)] == []


async def test_the_token_watch_detects_a_leak(tmp_path: Path) -> None:
    token, pipe = f"planted-secret-{uuid.uuid4().hex}", asyncio.subprocess.PIPE
    environment = {"PATH": os.environ["PATH"], "TOKEN": token}
    careless = await asyncio.create_subprocess_exec("sh", "-c", "read line", "sh", token, stdin=pipe, env=environment)
    async with watching(token, tmp_path) as watched:
        pass  # it looks at least once
    await careless.communicate(b"")
    assert {found.partition(" ")[0] for found in watched.found} == {"environ", "cmdline"}


async def test_another_host_gets_no_credential(server: GitHubServer, tmp_path: Path) -> None:
    git, copy = await git_for(server, tmp_path)

    async def asking(_: web.Request) -> web.Response:
        return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="x"'})

    async with upstream_server() as elsewhere, upstream_server() as lure:

        async def redirecting(request: web.Request) -> web.Response:
            raise web.HTTPFound(f"{elsewhere.url.replace('127.0.0.1', 'localhost')}{request.rel_url}")

        elsewhere.answer, lure.answer = asking, redirecting
        source = GitCredentials(lure.url, PersonalToken(TOKEN))
        lured = Git(f"{lure.url}/acme/docs.git", git.environment, is_local=False, credentials=source)
        assert "does not accept the token" in await refused(lured, copy)
    assert elsewhere.asked
    assert not any("Authorization" in request.headers for request, _ in elsewhere.asked + lure.asked)


@pytest.mark.parametrize("redirects", [False, True])
async def test_a_renamed_repository_is_followed(server: GitHubServer, tmp_path: Path, redirects: bool) -> None:  # noqa: FBT001
    git, copy = await git_for(server, tmp_path)
    server.repository.rename("acme-inc", "handbook")
    server.redirects_git = redirects
    await git.push(copy, "HEAD", BRANCH)
    assert server.repository.git.head(BRANCH)


async def test_an_app_pushes_and_replaces_a_revoked_token_once(server: GitHubServer, tmp_path: Path) -> None:
    async with connected(server, **as_app()) as github:
        git = Git.for_settings(settings_for(server, **as_app()), github.credentials)
        copy = await clone_with_a_commit(git, tmp_path)
        server.tokens.clear()
        await git.push(copy, "HEAD", BRANCH)
        assert len(server.token_requests) == 2
        server.tokens.clear()
        server.is_installed = False
        with pytest.raises(GitError, match="the GitHub App is not installed for this repository"):
            await git.push(copy, "HEAD", "pagehand/2")


async def test_a_revoked_token_is_explained(server: GitHubServer, tmp_path: Path) -> None:
    git, copy = await git_for(server, tmp_path)
    server.tokens.clear()
    assert "does not accept the token or password: make a new token" in await refused(git, copy)
    with pytest.raises(GitError, match="ls-remote: the repository's host does not accept the token"):
        await git.has_branch(copy, BRANCH)


def _read_only(server: GitHubServer) -> None:
    server.tokens[TOKEN] -= {"contents:write"}


def _hidden(server: GitHubServer) -> None:
    server.repository.name = "elsewhere"


def _protected(server: GitHubServer) -> None:
    server.repository.git.protect("pagehand/*")


@pytest.mark.parametrize(
    ("happens", "told"),
    [
        (_read_only, ("Contents: read and write", "Permission to acme/docs.git denied")),
        (_hidden, ("shows no such repository",)),
        (
            _protected,
            (
                "the branch is protected at its host: exempt branches that begin with pagehand/",
                "Changes must be made through a pull request.",
            ),
        ),
    ],
    ids=["read-only token", "hidden repository", "protected branch"],
)
async def test_a_refused_push_is_explained(
    server: GitHubServer, tmp_path: Path, happens: Callable[[GitHubServer], None], told: tuple[str, ...]
) -> None:
    git, copy = await git_for(server, tmp_path)
    happens(server)
    words = await refused(git, copy)
    assert [part for part in told if part not in words] == []


async def test_a_push_that_loses_a_race_keeps_the_other_commit(server: GitHubServer, tmp_path: Path) -> None:
    git, copy = await git_for(server, tmp_path)
    theirs = list[str]()
    server.before_push = lambda: theirs.append(branch_with_a_commit(server, BRANCH, "theirs.md"))
    words = await refused(git, copy)
    assert "rejected" in words or "failed to update ref" in words or "cannot lock ref" in words
    assert server.repository.git.head(BRANCH) == theirs[-1]


async def test_an_unreachable_host_is_explained(server: GitHubServer, tmp_path: Path) -> None:
    git, copy = await git_for(server, tmp_path)
    nowhere = Git("http://127.0.0.1:1/acme/docs.git", git.environment, is_local=False, credentials=git.credentials)
    assert "cannot be reached: check the network" in await refused(nowhere, copy)


@pytest.mark.parametrize(
    "identity",
    [{"github_token": SecretStr(TOKEN)}, pytest.param(as_app(), marks=pytest.mark.full)],
    ids=["token", "app"],
)
async def test_a_job_becomes_a_pull_request_and_a_follow_up_after_merge_another(
    server: GitHubServer, tmp_path: Path, identity: dict[str, Any]
) -> None:
    async with jobs_at(server, tmp_path, **identity) as made:
        job = await made.done('Replace "colour" with "color"')
        assert job["prLink"] == f"{server.url}/acme/docs/pull/1"
        assert (await made.continued(job["id"], 'Replace "name" with "code"'))[
            "prLink"
        ] == f"{server.url}/acme/docs/pull/1"
        assert '> Replace "name" with "code"' in server.pull_request(1).body
        server.merge(1, delete_branch=True)
        assert (await made.continued(job["id"], 'Replace "Every" with "Each"'))[
            "prLink"
        ] == f"{server.url}/acme/docs/pull/2"
    assert server.repository.git.git("show", f"{server.pull_request(2).sha}:colours.md") == "Each color has a code."
    kept = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert [path for path in kept if b"planted-secret" in path.read_bytes()] == []


async def test_an_invalid_token_stops_the_start_with_a_reason(server: GitHubServer, tmp_path: Path) -> None:
    with pytest.raises(JobServerError, match="the repository's host does not accept the token"):
        async with jobs_at(server, tmp_path, github_token=SecretStr("planted-secret-old")):
            pass


async def test_a_refused_pull_request_is_pending_and_opened_at_the_next_start(
    server: GitHubServer, tmp_path: Path
) -> None:
    server.tokens[TOKEN] -= {"pull_requests:write"}
    async with jobs_at(server, tmp_path) as made:
        job = await made.done('Replace "colour" with "color"')
        assert (job["status"], job["prLink"], job["details"]["pullRequest"]["state"]) == ("completed", None, "pending")
        assert "give it the permission Pull requests: read and write" in job["details"]["pullRequest"]["reason"]
        assert "give it the permission Pull requests: read and write" in made.log(job["id"])
        assert (await made.continued(job["id"], 'Replace "zebra" with "horse"'))["details"]["pullRequest"][
            "state"
        ] == "pending"
    server.tokens[TOKEN] = ALL_PERMISSIONS
    async with jobs_at(server, tmp_path, labels=("docs",)) as made:

        async def link() -> str:
            return str((await made.job(job["id"]))["prLink"] or "")

        assert (await until(link)).endswith("/pull/1")
    assert '> Replace "colour" with "color"' in server.pull_request(1).body
    assert server.pull_request(1).labels == ["docs"]
