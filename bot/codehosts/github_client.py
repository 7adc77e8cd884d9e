"""Makes single calls of GitHub's API, with limits of time and size, and without retries and redirects."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import aiohttp

from bot.runtime.http.bodies import read_up_to
from bot.runtime.http.retry_after import LONGEST_WAIT, parse_retry_after
from bot.runtime.text import printable_line

GRAPHQL = "/graphql"
_HEADERS = {
    "Accept": "application/vnd.github+json",
    "User-Agent": "Pagehand",
    "X-GitHub-Api-Version": "2022-11-28",
}
_UNSAID_S = 60.0
"""How long to wait, according to GitHub, if a secondary rate limit does not say."""
_LIMITING = {HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS}
_MOST_FAULTS, _SAID = 10, 300
_ANSWER_LIMIT = 10_000_000


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

    def seconds_to_wait(self, now: float) -> float | None:
        """Returns how long it asks to wait; None if it is not about a rate limit. `now` is in seconds since the epoch.

        Source: GitHub, "Rate limits for the REST API".
        """
        if self.status not in _LIMITING:
            return None
        after = parse_retry_after(self.headers.get("retry-after", ""), date=self.headers.get("date", ""), now=now)
        if after is not None:
            return after
        if (used_up := self.used_up_for(now)) is not None:
            return used_up
        said = self.said.lower()
        is_limit = self.status == HTTPStatus.TOO_MANY_REQUESTS or "rate limit" in said or "abuse" in said
        return _UNSAID_S if is_limit else None

    def used_up_for(self, now: float) -> float | None:
        """Returns for how long a limit is used up that this answer was charged to; None if some of it is left."""
        if self.headers.get("x-ratelimit-remaining", "") != "0":
            return None
        try:
            seconds = float(self.headers.get("x-ratelimit-reset", "")) - now
        except ValueError:
            return _UNSAID_S
        return min(max(seconds, 0.0), LONGEST_WAIT) + 1.0 if math.isfinite(seconds) else _UNSAID_S


def _fault_in_words(fault: object) -> str:
    if not isinstance(fault, dict):
        return str(fault)
    return str(fault.get("message") or f"'{fault.get('field')}' is {fault.get('code')}")


class GitHubClient:
    """Makes single calls of GitHub's API, and follows no redirect. `session` stays open."""

    def __init__(self, session: aiohttp.ClientSession, api_url: str) -> None:
        self._session = session
        self.url = api_url.rstrip("/")
        # GitHub Enterprise Server has its REST API below /api/v3, and GraphQL at /api/graphql.
        self._graphql = f"{self.url.removesuffix('/v3')}{GRAPHQL}"

    async def send(
        self, method: str, path: str, bearer: str, body: Mapping[str, Any] | None, *, etag: str = ""
    ) -> GitHubAnswer:
        """Makes a call. `path` begins with a slash; with an `etag`, the answer to what is unchanged is a 304.

        Raises:
            NoGitHubAnswerError: there is no answer, or a success that is not JSON.
        """
        headers = {**_HEADERS, "Authorization": f"Bearer {bearer}", **({"If-None-Match": etag} if etag else {})}
        url = self._graphql if path == GRAPHQL else f"{self.url}{path}"
        try:
            async with self._session.request(
                method,
                url,
                headers=headers,
                json=body,
                allow_redirects=False,  # they would get the token
                timeout=aiohttp.ClientTimeout(total=30.0, sock_connect=10.0),
            ) as answer:
                content = await read_up_to(_ANSWER_LIMIT, answer.content)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NoGitHubAnswerError(type(error).__name__, is_unreadable=isinstance(error, ValueError)) from None
        if len(content) > _ANSWER_LIMIT:
            raise NoGitHubAnswerError("too long", is_unreadable=True)
        names = {name.lower(): value for name, value in answer.headers.items() if value.isascii()}
        return GitHubAnswer(answer.status, names, _parsed(answer.status, content))


def _parsed(status: int, content: bytes) -> Any:
    """Returns the JSON of an answer; None if it has none. Raises NoGitHubAnswerError for a success that is not JSON."""
    try:
        return json.loads(content) if content else None
    except (ValueError, RecursionError):
        if status < HTTPStatus.MULTIPLE_CHOICES:
            raise NoGitHubAnswerError("no JSON", is_unreadable=True) from None
        return None
