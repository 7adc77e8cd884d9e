"""Authenticates at GitHub with a personal token, or as a GitHub App with tokens that last an hour."""

import asyncio
import re
import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

import jwt

from bot.jobserver.pull_requests.github.api import Call, GitHubRestApi
from bot.jobserver.pull_requests.github.errors import FIND_INSTALLATION, MAKE_TOKEN, MovedError
from bot.jobserver.pull_requests.github.wire import InstallationPayload, InstallationTokenPayload, parse
from bot.jobserver.repository.credentials import Credential

_EARLY_S = timedelta(minutes=5).total_seconds()
"""How long before its end a token is renewed, so that calls in progress can finish."""
_CLOCK_SKEW_S, _APP_TOKEN_S = 60, 8 * 60
_REPOSITORY_ID = re.compile(r"/repositories/(\d{1,20})/", re.ASCII)
_USERNAME = "x-access-token"


class TokenSource(Protocol):
    """Both methods raise CodeHostError."""

    async def token(self) -> str: ...

    async def renew(self, refused: str) -> bool:
        """Discards a token that was refused; returns whether there is another one to try."""
        ...


@dataclass(frozen=True)
class PersonalToken:
    """A token that a person made."""

    _token: str = field(repr=False)

    async def token(self) -> str:
        return self._token

    async def renew(self, refused: str) -> bool:  # noqa: ARG002 - only a person can create another one
        return False


@dataclass(frozen=True)
class GitHubApp:
    """A GitHub App."""

    id: str
    private_key: str = field(repr=False)

    def token(self) -> str:
        """Returns a JSON Web Token, which GitHub takes for at most ten minutes of its own clock."""
        now = int(time.time())
        claims = {"iss": self.id, "iat": now - _CLOCK_SKEW_S, "exp": now + _APP_TOKEN_S}
        return jwt.encode(claims, self.private_key, algorithm="RS256")


@dataclass(frozen=True)
class _Installation:
    id: int
    repository_id: int | None


class InstallationTokens:
    """Tokens of an App for one repository, each used until shortly before it expires."""

    def __init__(self, api: GitHubRestApi, app: GitHubApp, *, owner: str, repository: str) -> None:
        self._api = api
        self._app = app
        self._owner = owner
        self._repository = repository
        self._lock = asyncio.Lock()
        self._current: InstallationTokenPayload | None = None

    async def token(self) -> str:
        async with self._lock:
            if self._current is None or self._current.expires_at.timestamp() - self._api.now() < _EARLY_S:
                self._current = None  # not to be used if the next line fails
                self._current = await self._make()
            return self._current.token.get_secret_value()

    async def renew(self, refused: str) -> bool:
        async with self._lock:
            if self._current is not None and self._current.token.get_secret_value() == refused:
                self._current = None
        return True

    async def _make(self) -> InstallationTokenPayload:
        installation = await self._find()
        only = (
            {"repository_ids": [installation.repository_id]}
            if installation.repository_id
            else {"repositories": [self._repository]}
        )
        path, variables = "/app/installations/{id}/access_tokens", {"id": str(installation.id)}
        answer = await self._api.call(Call("POST", path, MAKE_TOKEN, variables, only), self._app.token())
        return parse(InstallationTokenPayload, answer)

    async def _find(self) -> _Installation:
        variables = {"owner": self._owner, "repo": self._repository}
        call = Call("GET", "/repos/{owner}/{repo}/installation", FIND_INSTALLATION, variables)
        try:
            answer, repository = await self._api.call(call, self._app.token()), None
        except MovedError as moved:
            repository = _REPOSITORY_ID.search(moved.location)
            there = Call("GET", moved.location, FIND_INSTALLATION)
            answer = await self._api.call(there, self._app.token())
        return _Installation(parse(InstallationPayload, answer).id, int(repository[1]) if repository else None)


@dataclass(frozen=True)
class GitCredentials:
    """The same identity as credentials for git over https."""

    origin: str
    tokens: TokenSource = field(repr=False)
    username: str = _USERNAME

    async def credential(self) -> Credential:
        return Credential(self.username, await self.tokens.token())

    async def renew(self, refused: Credential) -> bool:
        return await self.tokens.renew(refused.secret)
