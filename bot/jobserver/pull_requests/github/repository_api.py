"""GitHub's API for one repository, with a personal token, or as a GitHub App with tokens that last an hour."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from bot.codehosts.github_client import GitHubAnswer
from bot.jobserver.pull_requests.github.api import FIND_INSTALLATION, MAKE_TOKEN, READ, Call, GitHubRestApi
from bot.jobserver.pull_requests.github.wire import (
    InstallationPayload,
    InstallationTokenPayload,
    RepositoryPayload,
    parse,
)
from bot.jobserver.repository.credentials import TokenSource

_EARLY_S = timedelta(minutes=5).total_seconds()
"""How long before its end a token is renewed, so that calls in progress can finish."""
_CLOCK_SKEW_S, _APP_TOKEN_S = 60, 8 * 60


@dataclass(frozen=True)
class PersonalToken:
    """A token that a person made, or an App's own, which cannot be renewed here."""

    _token: str = field(repr=False)

    async def token(self) -> str:
        return self._token

    async def renew(self, refused: str) -> bool:  # noqa: ARG002 - see above
        return False


class InstallationTokens:
    """Tokens of an App for one repository, each used until shortly before it expires."""

    def __init__(self, api: GitHubRestApi, *, app_id: str, private_key: str, owner: str, repository: str) -> None:
        self._api = api
        self._app_id = app_id
        self._private_key = private_key
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
        find = Call("GET", f"/repos/{self._owner}/{self._repository}/installation", FIND_INSTALLATION)
        installation = parse(InstallationPayload, await self._api.call(find, self._app_token()))
        path = f"/app/installations/{installation.id}/access_tokens"
        make = Call("POST", path, MAKE_TOKEN, {"repositories": [self._repository]})
        return parse(InstallationTokenPayload, await self._api.call(make, self._app_token()))

    def _app_token(self) -> PersonalToken:
        """Returns the App's own JSON Web Token, which GitHub takes for at most ten minutes of its own clock."""
        import jwt  # noqa: PLC0415 - only an App needs it

        now = int(time.time())
        claims = {"iss": self._app_id, "iat": now - _CLOCK_SKEW_S, "exp": now + _APP_TOKEN_S}
        return PersonalToken(jwt.encode(claims, self._private_key, algorithm="RS256"))


class RepositoryApi:
    """Makes calls with paths relative to the repository's."""

    def __init__(self, api: GitHubRestApi, tokens: TokenSource, *, owner: str, repository: str) -> None:
        self.api = api
        self.owner = owner
        self.full_name = f"{owner}/{repository}"
        self._tokens = tokens

    async def describe(self) -> RepositoryPayload:
        """Returns the repository's properties. Raises CodeHostError."""
        return parse(RepositoryPayload, await self.call(Call("GET", "", READ)))

    async def call(self, call: Call) -> Any:
        """Makes a call. Raises CodeHostError."""
        return await self.api.call(replace(call, path=f"/repos/{self.full_name}{call.path}"), self._tokens)

    async def send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, etag: str = ""
    ) -> GitHubAnswer:
        """Makes one call with a path from the API's root; implements `GitHubCalls`. Raises CodeHostError, too."""
        return await self.api.send(method, path, self._tokens, body, etag=etag)
