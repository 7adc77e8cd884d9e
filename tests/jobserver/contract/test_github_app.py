"""A GitHub App's tokens, and what the check of the settings says about an identity."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from pydantic import SecretStr
from support.servers import github_server_faults as faults
from support.servers.github_server import GitHubServer, github_server
from support.servers.github_server_state import TOKEN
from support.worlds.github_world import PassingTime, as_app, branch_with_a_commit, connected, settings_for

from bot.jobserver.errors import CodeHostError
from bot.jobserver.pull_requests.github.access_check import check_github
from bot.jobserver.settings import JobServerSettings

BRANCH = "pagehand/1"
INSTALLATION = "/repos/acme/docs/installation"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[GitHubServer]:
    async with github_server(tmp_path / "github") as running:
        branch_with_a_commit(running)
        yield running


async def test_one_token_serves_concurrent_calls_and_only_this_repository(server: GitHubServer) -> None:
    async with connected(server, **as_app()) as github:
        keeper = github.pull_requests("main")
        await asyncio.gather(*(keeper.find(BRANCH) for _ in range(5)))
    assert server.token_requests == [{"repositories": ["docs"]}]


async def test_a_token_is_renewed_shortly_before_it_expires(server: GitHubServer) -> None:
    passing = PassingTime(time.time())
    async with connected(server, passing, **as_app()) as github:
        keeper = github.pull_requests("main")
        for minutes, made in ((0, 1), (50, 1), (6, 2)):
            passing.at += minutes * 60
            await keeper.find(BRANCH)
            assert len(server.token_requests) == made


async def test_a_revoked_token_is_renewed_once(server: GitHubServer) -> None:
    async with connected(server, **as_app()) as github:
        keeper = github.pull_requests("main")
        await keeper.find(BRANCH)
        server.tokens.clear()
        await asyncio.gather(*(keeper.find(BRANCH) for _ in range(3)))
        assert len(server.token_requests) == 2
        server.faults.arm("GET", "/repos/acme/docs/pulls", faults.error(401, "Bad credentials"), times=3)
        with pytest.raises(CodeHostError, match="does not accept the token"):
            await keeper.find(BRANCH)
        assert len(server.faults.left) == 1


async def test_the_token_of_a_renamed_repository_is_for_its_id(server: GitHubServer) -> None:
    server.repository.rename("acme", "handbook")
    former = settings_for(server, repository=f"{server.url}/acme/docs.git", **as_app()).repository
    async with connected(server, repository=former, **as_app()) as github:
        assert (await github.repository.describe()).full_name == "acme/handbook"
    assert list(server.token_requests[0]) == ["repository_ids"]


async def test_an_app_that_is_not_installed_is_explained(server: GitHubServer) -> None:
    server.is_installed = False
    async with connected(server, **as_app()) as github:
        with pytest.raises(CodeHostError, match="is not installed for this repository: install it"):
            await github.pull_requests("main").find(BRANCH)


async def test_a_wrong_key_is_explained(server: GitHubServer) -> None:
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = SecretStr(other.private_bytes(serialization.Encoding.PEM, form, none).decode())
    async with connected(server, **(as_app() | {"github_app_private_key": pem})) as github:
        with pytest.raises(CodeHostError, match="does not know the App: check PAGEHAND_JOBSERVER_GITHUB_APP_ID"):
            await github.pull_requests("main").find(BRANCH)


async def test_transient_errors_while_creating_a_token_are_retried(server: GitHubServer) -> None:
    passing = PassingTime(time.time())
    server.faults.arm("GET", INSTALLATION, faults.broken(), times=2)
    server.faults.arm("POST", "/app/installations/77/access_tokens", faults.nonsense(status=201))
    async with connected(server, passing, **as_app()) as github:
        assert await github.pull_requests("main").find(BRANCH) is None


async def shown(settings: JobServerSettings) -> list[str]:
    signs = {True: "ok", False: "failed", None: "note"}
    return [f"{signs[result.is_ok]}: {result.name}: {result.message}" for result in await check_github(settings)]


@pytest.mark.parametrize("identity", [{}, as_app()], ids=["token", "app"])
async def test_the_github_check_reports_what_works_and_changes_nothing(
    server: GitHubServer, identity: dict[str, Any]
) -> None:
    assert await shown(settings_for(server, **identity)) == [
        "ok: GitHub: the repository acme/docs can be read",
        "ok: pull requests: they can be opened",
        "ok: checks: it can read the checks of commits",
        "ok: checks: it can read the statuses of commits",
    ]
    assert server.repository.pull_requests == []


async def test_the_github_check_names_missing_permissions(server: GitHubServer) -> None:
    server.tokens[TOKEN] = frozenset()
    lines = await shown(settings_for(server))
    assert lines[1].startswith("failed: pull requests: the token or App may not open a pull request")
    assert [line.partition(":")[0] for line in lines[2:]] == ["note", "note"]


async def test_the_github_check_explains_a_wrong_identity(server: GitHubServer) -> None:
    (line,) = await shown(settings_for(server, github_token=SecretStr("planted-secret-old")))
    assert line.startswith("failed: GitHub: GitHub does not accept the token: make a new one")
    server.repository.archived = True
    assert (await shown(settings_for(server)))[-1] == ("failed: push: the repository is archived: nobody can change it")


async def test_without_github_there_is_nothing_to_check(tmp_path: Path) -> None:
    settings = JobServerSettings(repository=str(tmp_path), api_key=SecretStr("planted-key-of-sixteen"))
    assert await shown(settings) == []
