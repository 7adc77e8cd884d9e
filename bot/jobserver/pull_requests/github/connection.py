"""Connects to GitHub according to the settings."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import aiohttp

from bot.jobserver.pull_requests.github.api import GitHubRestApi
from bot.jobserver.pull_requests.github.authentication import (
    GitCredentials,
    GitHubApp,
    InstallationTokens,
    PersonalToken,
    TokenSource,
)
from bot.jobserver.pull_requests.github.github_pull_requests import GitHubPullRequests, PullRequestOptions
from bot.jobserver.pull_requests.github.repository_api import RepositoryApi
from bot.jobserver.repository.credentials import remove_abandoned
from bot.jobserver.settings import JobServerSettings
from bot.jobserver.settings.github import GitHubAddress
from bot.runtime.clock import SteadyClock

_PUBLIC_API = "https://api.github.com"


@dataclass(frozen=True)
class GitHubConnection:
    """An identity at GitHub for its API and for git. `credentials` is None if git does not use https."""

    repository: RepositoryApi = field(repr=False)
    credentials: GitCredentials | None
    options: PullRequestOptions

    def pull_requests(self, base: str) -> GitHubPullRequests:
        return GitHubPullRequests(self.repository, self.options, base=base)


@contextlib.asynccontextmanager
async def connect(
    settings: JobServerSettings,
    *,
    now: Callable[[], float] | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[GitHubConnection | None]:
    """Provides a connection, or None if the settings do not use GitHub. Makes no calls yet.

    `now` is in seconds since the epoch.
    """
    address = settings.github_address_of(settings.repository)
    if address is None:
        yield None
        return
    from bot.jobserver.pull_requests.github.client import GitHubClient  # noqa: PLC0415 - githubkit takes its time

    remove_abandoned()
    url = settings.github_api_url or address.api_url
    async with aiohttp.ClientSession(trust_env=True) as session:
        api = GitHubRestApi(GitHubClient(session, url), url, now or SteadyClock().now, sleep)
        yield _connection(settings, address, api)


def _connection(settings: JobServerSettings, address: GitHubAddress, api: GitHubRestApi) -> GitHubConnection:
    tokens = _tokens(settings, address, api)
    return GitHubConnection(
        RepositoryApi(api, tokens, owner=address.owner, repository=address.name),
        _credentials(settings.repository, tokens),
        PullRequestOptions(settings.draft, settings.labels, settings.github_users, api.url == _PUBLIC_API),
    )


def _tokens(settings: JobServerSettings, address: GitHubAddress, api: GitHubRestApi) -> TokenSource:
    token, app_id, key = settings.github_token, settings.github_app_id, settings.github_app_private_key
    if token is not None:
        return PersonalToken(token.get_secret_value())
    app = GitHubApp(app_id or "", key.get_secret_value() if key else "")  # the settings require both
    return InstallationTokens(api, app, owner=address.owner, repository=address.name)


def _credentials(repository: str, tokens: TokenSource) -> GitCredentials | None:
    """Takes the origin and the user as they are written in the address, since git compares them like that."""
    parts = urlsplit(repository)
    if parts.scheme not in {"http", "https"}:
        return None
    user, _, host = parts.netloc.rpartition("@")
    origin = f"{parts.scheme}://{host}"
    return GitCredentials(origin, tokens, user) if user else GitCredentials(origin, tokens)
