"""githubkit, over the server's own connections: neither its cache nor its retries, redirects or models are used."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import aiohttp
import httpx
from githubkit.auth import UnauthAuthStrategy
from githubkit.core import GitHubCore
from githubkit.exception import RequestError, RequestFailed
from githubkit.response import Response

from bot.jobserver.pull_requests.github.api import GitHubAnswer, NoGitHubAnswerError

_HEADERS = {"X-GitHub-Api-Version": "2022-11-28"}
_CALL_TIMEOUT = aiohttp.ClientTimeout(total=30.0, sock_connect=10.0)
_ANSWER_LIMIT = 10_000_000
_CHUNK = 65_536
_OF_THE_CONNECTION = {
    "accept-encoding", "connection", "host", "content-encoding", "content-length", "transfer-encoding",
}  # fmt: skip
"""Headers that the connections set and read themselves."""


class GitHubClient(GitHubCore[UnauthAuthStrategy]):
    """Implements `GitHubTransport`. `session` stays open."""

    def __init__(self, session: aiohttp.ClientSession, api_url: str) -> None:
        super().__init__(
            base_url=api_url,
            user_agent="Pagehand",
            follow_redirects=False,  # they would get the token
            async_transport=_AiohttpConnections(session),
            http_cache=False,
            auto_retry=False,
        )

    async def send(self, method: str, path: str, bearer: str, body: Mapping[str, Any] | None) -> GitHubAnswer:
        headers = {**_HEADERS, "Authorization": f"Bearer {bearer}"}
        try:
            response: Response[Any] = await self.arequest(method, path, json=body, headers=headers)
        except RequestFailed as error:
            response = error.response
        except RequestError as error:
            raise NoGitHubAnswerError(
                type(error.exc).__name__, is_unreadable=isinstance(error.exc, ValueError)
            ) from None
        names = {name.lower(): value for name, value in response.headers.items()}
        return GitHubAnswer(response.status_code, names, _parsed(response))

    def _check_rate_limit(self, response: Response[Any]) -> None:
        """Does nothing: `seconds_to_wait` also reads dates and nonsense, which fail here."""


def _parsed(response: Response[Any]) -> Any:
    """Returns the JSON of an answer; None if it has none. Raises NoGitHubAnswerError for a success that is not JSON."""
    try:
        return response.json() if response.content else None
    except (ValueError, RecursionError):
        if response.status_code < HTTPStatus.MULTIPLE_CHOICES:
            raise NoGitHubAnswerError("no JSON", is_unreadable=True) from None
        return None


class _AiohttpConnections(httpx.AsyncBaseTransport):
    """aiohttp as a transport of httpx, with limits of time and size."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        content = bytearray()
        async with self._session.request(
            request.method,
            str(request.url),
            headers=_passed(request.headers),
            data=request.content,
            allow_redirects=False,
            timeout=_CALL_TIMEOUT,
        ) as answer:
            async for chunk in answer.content.iter_chunked(_CHUNK):
                content += chunk
                if len(content) > _ANSWER_LIMIT:
                    raise ValueError("the answer is too long")
            return httpx.Response(answer.status, headers=_passed(answer.headers), content=bytes(content))


def _passed(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _OF_THE_CONNECTION}
