"""GitHub's API for one repository, which follows renames."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Literal

from bot.jobserver.pull_requests.github.api import Call, GitHubRestApi
from bot.jobserver.pull_requests.github.authentication import TokenSource
from bot.jobserver.pull_requests.github.errors import READ, MovedError, Purpose, RefusedError
from bot.jobserver.pull_requests.github.wire import RepositoryPayload, parse
from bot.jobserver.settings import PREFIX

logger = logging.getLogger(__name__)
_REPOSITORY = "/repos/{owner}/{repo}"


class RepositoryApi:
    """Makes calls with paths relative to the repository's, in which `owner` and `repo` are filled in."""

    def __init__(self, api: GitHubRestApi, tokens: TokenSource, *, owner: str, repository: str) -> None:
        self.api = api
        self._tokens = tokens
        self._name = {"owner": owner, "repo": repository}

    async def describe(self) -> RepositoryPayload:
        """Returns the repository's properties. Raises CodeHostError, as do the other three methods."""
        return parse(RepositoryPayload, await self.get("", READ))

    async def get(self, path: str, purpose: Purpose, **variables: str) -> Any:
        return await self._call("GET", path, purpose, variables)

    async def post(
        self, path: str, purpose: Purpose, body: Mapping[str, Any], *, is_repeatable: bool = True, **variables: str
    ) -> Any:
        return await self._call("POST", path, purpose, variables, body, is_repeatable=is_repeatable)

    async def patch(self, path: str, purpose: Purpose, body: Mapping[str, Any], **variables: str) -> Any:
        return await self._call("PATCH", path, purpose, variables, body)

    async def _call(
        self,
        method: Literal["GET", "POST", "PATCH"],
        path: str,
        purpose: Purpose,
        variables: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
        *,
        is_repeatable: bool = True,
    ) -> Any:
        def named() -> Call:
            values = {**variables, **self._name}
            return Call(method, _REPOSITORY + path, purpose, values, body, is_repeatable)

        try:
            return await self._authorized(named())
        except MovedError:
            await self._follow()
            return await self._authorized(named())

    async def _authorized(self, call: Call) -> Any:
        token = await self._tokens.token()
        try:
            return await self.api.call(call, token)
        except RefusedError as error:
            if error.status != HTTPStatus.UNAUTHORIZED or not await self._tokens.renew(token):
                raise
        return await self.api.call(call, await self._tokens.token())

    async def _follow(self) -> None:
        """Finds the repository's new name. Raises MovedError if that was renamed again."""
        try:
            answer = await self._authorized(Call("GET", _REPOSITORY, READ, self._name))
        except MovedError as moved:
            answer = await self._authorized(Call("GET", moved.location, READ))
        now = parse(RepositoryPayload, answer)
        old = "{owner}/{repo}".format(**self._name)
        owner, _, name = now.full_name.partition("/")
        self._name = {"owner": owner, "repo": name}
        logger.warning(
            "GitHub's repository %s is called %s now: set %sREPOSITORY to %s", old, now.full_name, PREFIX, now.clone_url
        )
