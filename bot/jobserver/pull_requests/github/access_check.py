"""Checks the permissions of the token or App at GitHub without changing anything there."""

from collections.abc import AsyncIterator
from http import HTTPStatus

from bot.jobserver.errors import CodeHostError
from bot.jobserver.findings import SetupFinding
from bot.jobserver.pull_requests.github.connection import GitHubConnection, connect
from bot.jobserver.pull_requests.github.errors import OPEN, READ_CHECKS, READ_STATUSES, Purpose, RefusedError
from bot.jobserver.pull_requests.github.repository_api import RepositoryApi
from bot.jobserver.settings import JobServerSettings


async def check_github(settings: JobServerSettings) -> list[SetupFinding]:
    """Returns what works and what does not; empty if the settings do not use GitHub."""
    async with connect(settings) as connection:
        return [] if connection is None else [result async for result in _check(connection, settings.base_branch)]


async def _check(connection: GitHubConnection, base: str | None) -> AsyncIterator[SetupFinding]:
    try:
        found = await connection.repository.describe()
    except CodeHostError as error:
        yield SetupFinding("GitHub", is_ok=False, message=str(error))
        return
    yield SetupFinding("GitHub", is_ok=True, message=f"the repository {found.full_name} can be read")
    if found.archived:
        yield SetupFinding("push", is_ok=False, message="the repository is archived: nobody can change it")
        return
    base = base or found.default_branch
    yield await _check_pull_requests(connection.repository, base)
    yield await _check_reading(connection.repository, "/commits/{ref}/check-runs?per_page=1", READ_CHECKS, base)
    yield await _check_reading(connection.repository, "/commits/{ref}/status", READ_STATUSES, base)


async def _check_pull_requests(repository: RepositoryApi, base: str) -> SetupFinding:
    """Tries to open a pull request from a branch into itself: with permission, GitHub calls it invalid."""
    body = {"title": "Pagehand tries whether it may", "head": base, "base": base}
    try:
        await repository.post("/pulls", OPEN, body, is_repeatable=False)
    except RefusedError as error:
        if error.status != HTTPStatus.UNPROCESSABLE_ENTITY:
            return SetupFinding("pull requests", is_ok=False, message=str(error))
    except CodeHostError as error:
        return SetupFinding("pull requests", is_ok=False, message=str(error))
    return SetupFinding("pull requests", is_ok=True, message="they can be opened")


async def _check_reading(repository: RepositoryApi, path: str, purpose: Purpose, ref: str) -> SetupFinding:
    try:
        await repository.get(path, purpose, ref=ref)
    except CodeHostError as error:
        return SetupFinding("checks", is_ok=None, message=f"they are not shown: {error}")
    return SetupFinding("checks", is_ok=True, message=f"it can {purpose.doing}")
