"""A connection to a GitHub for tests, with time that passes when somebody waits."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from support.servers.github_server import GitHubServer
from support.servers.github_server_state import APP_ID, TOKEN, app_key_pem
from support.worlds.jobserver_world import JobServerWorld, running

from bot.jobserver.pull_requests.github.github_pull_requests import GitHubConnection, connect
from bot.jobserver.settings import JobServerSettings

KEY = "planted-key-of-the-job-server"
AS_PERSON = {"github_token": SecretStr(TOKEN)}


def as_app() -> dict[str, Any]:
    return {"github_app_id": APP_ID, "github_app_private_key": SecretStr(app_key_pem())}


def settings_for(server: GitHubServer, **values: Any) -> JobServerSettings:
    identity = {} if "github_app_id" in values or "github_token" in values else AS_PERSON
    given: dict[str, Any] = {"repository": server.repository_url, "api_key": SecretStr(KEY), **identity}
    return JobServerSettings(**(given | values))


class PassingTime:
    """A clock that advances by sleeping, and records how long that was."""

    def __init__(self, now: float) -> None:
        self.at = now
        self.slept: list[float] = []

    def now(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


@asynccontextmanager
async def connected(
    server: GitHubServer, time: PassingTime | None = None, **values: Any
) -> AsyncIterator[GitHubConnection]:
    times: dict[str, Any] = {} if time is None else {"now": time.now, "sleep": time.sleep}
    async with connect(settings_for(server, **values), **times) as connection:
        assert connection is not None
        yield connection


def branch_with_a_commit(server: GitHubServer, branch: str = "pagehand/1", name: str = "new.md") -> str:
    """Pushes a branch as the job server would."""
    return server.repository.git.commit(branch, {name: "New.\n"}, "Add a page")


@asynccontextmanager
async def jobs_at(server: GitHubServer, directory: Path, **settings: Any) -> AsyncIterator[JobServerWorld]:
    """Starts a job server of the repository there, with a person's token if no other identity is given."""
    given = settings if "github_app_id" in settings else {**AS_PERSON, **settings}
    given = {"address": server.repository_url, **given}
    async with running(server.repository.git.path, directory / "data", **given) as world:
        yield world
