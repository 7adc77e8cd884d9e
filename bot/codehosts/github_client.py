"""Makes single calls of GitHub's API: githubkit, over connections of our own, without its cache, its retries, redirects
and models.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol

import aiohttp
import httpx
from githubkit.auth import UnauthAuthStrategy
from githubkit.core import GitHubCore
from githubkit.exception import RequestError, RequestFailed
from githubkit.response import Response

from bot.runtime.http.retry_after import LONGEST_WAIT, parse_retry_after
from bot.runtime.text import printable_line

GRAPHQL = "/graphql"
_HEADERS = {"X-GitHub-Api-Version": "2022-11-28"}
_UNSAID_S = 60.0
"""How long to wait, according to GitHub, if a secondary rate limit does not say."""
_LIMITING = {403, 429}
_MOST_FAULTS, _SAID = 10, 300
_CALL_TIMEOUT = aiohttp.ClientTimeout(total=30.0, sock_connect=10.0)
_ANSWER_LIMIT = 10_000_000
_CHUNK = 65_536
_OF_THE_CONNECTION = {
    "accept-encoding", "connection", "host", "content-encoding", "content-length", "transfer-encoding",
}  # fmt: skip
"""Headers that the connections set and read themselves."""


class NoGitHubAnswerError(Exception):
    """There was no answer, or none that can be read."""

    def __init__(self, what: str, *, is_unreadable: bool = False) -> None:
        self.is_unreadable = is_unreadable
        super().__init__(what)


@dataclass(frozen=True)
class GitHubAnswer:
    """An answer of any status. `headers` have names in lower case; `data` is parsed JSON, or None."""

    status: int
    headers: Mapping[str, str]
    data: Any

    @property
    def said(self) -> str:
        """GitHub's own message about a failure, with the faults that it lists, in one line."""
        found = self.data if isinstance(self.data, dict) else {}
        listed = found.get("errors")
        faults = [listed] if isinstance(listed, str) else listed if isinstance(listed, list) else []
        words = "; ".join(_fault_in_words(each) for each in faults[:_MOST_FAULTS])
        return printable_line(f"{found.get('message') or self.status}{': ' if words else ''}{words}", _SAID)


def _fault_in_words(fault: object) -> str:
    if not isinstance(fault, dict):
        return str(fault)
    return str(fault.get("message") or f"'{fault.get('field')}' is {fault.get('code')}")


class GitHubTransport(Protocol):
    """Makes one call of GitHub's API and follows no redirect."""

    async def send(
        self, method: str, path: str, bearer: str, body: Mapping[str, Any] | None, *, etag: str = ""
    ) -> GitHubAnswer:
        """Makes a call. `path` begins with a slash; with an `etag`, the answer to what is unchanged is a 304.

        Raises:
            NoGitHubAnswerError: there is no answer, or a success that is not JSON.
        """
        ...


def seconds_to_wait(status: int, said: str, headers: Mapping[str, str], *, now: float) -> float | None:
    """Returns how long an answer asks to wait; None if it is not about a rate limit.

    Source: GitHub, "Rate limits for the REST API". `headers` have names in lower case; `now` is in seconds since the
    epoch.
    """
    if status not in _LIMITING:
        return None
    after = parse_retry_after(headers.get("retry-after", ""), date=headers.get("date", ""), now=now)
    if after is not None:
        return after
    if headers.get("x-ratelimit-remaining", "") == "0":
        return _until_reset(headers.get("x-ratelimit-reset", ""), now)
    is_secondary = "rate limit" in said.lower() or "abuse" in said.lower()
    return _UNSAID_S if status == 429 or is_secondary else None  # noqa: PLR2004 - Too Many Requests


def _until_reset(reset: str, now: float) -> float:
    try:
        seconds = float(reset) - now
    except ValueError:
        return _UNSAID_S
    return min(max(seconds, 0.0), LONGEST_WAIT) + 1.0 if math.isfinite(seconds) else _UNSAID_S


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
        # GitHub Enterprise Server has its REST API below /api/v3, and GraphQL at /api/graphql.
        self._graphql = f"{api_url.rstrip('/').removesuffix('/v3')}{GRAPHQL}"

    async def send(
        self, method: str, path: str, bearer: str, body: Mapping[str, Any] | None, *, etag: str = ""
    ) -> GitHubAnswer:
        headers = {**_HEADERS, "Authorization": f"Bearer {bearer}", **({"If-None-Match": etag} if etag else {})}
        address = self._graphql if path == GRAPHQL else path
        try:
            response: Response[Any] = await self.arequest(method, address, json=body, headers=headers)
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
