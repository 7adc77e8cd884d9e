"""Calls GitHub's REST API, retries calls if that is safe, and classifies failures."""

import asyncio
import math
import random
import re
from collections import UserDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Literal
from urllib.parse import urlsplit

import aiohttp
import gidgethub
from gidgethub.abc import GitHubAPI

from bot.jobserver.pull_requests.github.errors import (
    BusyError,
    MovedError,
    Purpose,
    RefusedError,
    UncertainError,
    refusal,
)
from bot.jobserver.text import one_line
from bot.runtime.backoff import Backoff
from bot.runtime.clock import SteadyClock
from bot.runtime.http.retry_after import LONGEST_WAIT, parse_retry_after

Answer = tuple[str | None, str | None, object, str | None]
"""What gidgethub caches: the ETag, the time of the last change, the parsed body, and the next page."""
_KEPT = 100
"""How many answers are cached, each with up to 100 kB."""
_SINGLE = re.compile(r"/pulls/\d+\Z", re.ASCII)
LONGEST_PATIENCE_S = 60.0
"""The longest time that a call waits for rate limits to end, all its attempts together."""
_UNSAID_S = 60.0
"""How long to wait, according to GitHub, if a secondary rate limit does not say."""
_LIMITING = {403, 429}
ATTEMPTS = 4
BACKOFF = Backoff(first=0.5, longest=8.0, spread=(0.5, 1.0))
_CALL_TIMEOUT = aiohttp.ClientTimeout(total=30.0, sock_connect=10.0)
_ANSWER_LIMIT = 10_000_000
_CHUNK = 65_536
_NO_BODY = b""
_KNOWN_STATUSES = frozenset(map(int, HTTPStatus))
_NOT_UNDERSTOOD = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)
"""What gidgethub raises for invalid answers."""


class AnswerCache(UserDict[str, Answer]):
    """The latest answers about single pull requests, by address: a request with their ETag does not count as a call.

    Keeps the newest hundred, and no lists or checks.
    """

    def __setitem__(self, address: str, answer: Answer) -> None:
        if not _SINGLE.search(address):
            return
        self.data.pop(address, None)
        self.data[address] = answer
        if len(self.data) > _KEPT:
            del self.data[next(iter(self.data))]


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


class GitHubPause:
    """Delays all calls while a rate limit lasts, since GitHub may ban clients that continue."""

    def __init__(self, *, now: Callable[[], float], sleep: Callable[[float], Awaitable[None]]) -> None:
        self._now = now
        self._sleep = sleep
        self._until = 0.0

    def hold(self, seconds: float) -> None:
        self._until = max(self._until, self._now() + seconds)

    async def wait(self, patience: float) -> float:
        """Waits until calls may be made, and returns what is left of `patience`; both are in seconds.

        Raises:
            BusyError: the rate limit lasts longer.
        """
        while (seconds := self._until - self._now()) > 0:
            if seconds > patience:
                raise BusyError(f"GitHub lets nothing through until {self._shown_end()}: it limits the rate of calls")
            await self._sleep(seconds)
            patience -= seconds
        return patience

    def _shown_end(self) -> str:
        return f"{datetime.fromtimestamp(math.ceil(self._until / 60) * 60, UTC):%H:%M} UTC"


@dataclass(frozen=True)
class Call:
    """One call. `path` is a URI template; `body` is sent as JSON; `is_repeatable` if the call is idempotent."""

    method: Literal["GET", "POST", "PATCH"]
    path: str
    purpose: Purpose
    variables: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    is_repeatable: bool = True


@dataclass(frozen=True)
class Authorization:
    """The credential of a call: a token, or an App's own JWT."""

    token: str | None = field(default=None, repr=False)
    jwt: str | None = field(default=None, repr=False)


class GitHubRestApi:
    """Makes calls with retries."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        api_url: str,
        *,
        now: Callable[[], float] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.url = api_url
        self.now = now or SteadyClock().now
        self.sleep = sleep
        self._jitter = jitter
        self._transport = _Transport(session, "Pagehand", base_url=api_url)
        self._gate = GitHubPause(now=self.now, sleep=sleep)

    async def call(self, call: Call, authorization: Authorization) -> Any:
        """Returns the answer: parsed JSON, or text if it is not JSON.

        Raises:
            CodeHostError: one of the classes in `errors`.
        """
        failures, patience = 0, LONGEST_PATIENCE_S
        while True:
            patience = await self._gate.wait(patience)
            try:
                return await self._call_once(call, authorization)
            except _RateLimitedError:
                failures += 1
                if failures >= ATTEMPTS:
                    raise
            except UncertainError:
                failures += 1
                if failures >= ATTEMPTS or not call.is_repeatable:
                    raise
                await self.pause(failures)

    async def pause(self, failures: int) -> None:
        await self.sleep(BACKOFF.delay(failures, jitter=self._jitter()))

    async def _call_once(self, call: Call, authorization: Authorization) -> Any:
        try:
            return await self._transport.send(call, authorization)
        except gidgethub.RedirectionException as error:
            raise MovedError(self._location(error.headers.get("location", ""))) from None
        except gidgethub.GitHubBroken as error:
            raise UncertainError(f"GitHub has a fault of its own ({int(error.status_code)}): try again later") from None
        except gidgethub.HTTPException as error:
            raise self._refused(call, error) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise UncertainError(
                f"GitHub cannot be reached at {self.url} ({type(error).__name__}): check the network, then try again"
            ) from None
        except _NOT_UNDERSTOOD:
            raise UncertainError("GitHub's answer makes no sense; is the address of its API right?") from None

    def _refused(self, call: Call, error: gidgethub.HTTPException) -> RefusedError:
        status, said = int(error.status_code), one_line(str(error))
        headers = {name.lower(): value for name, value in error.headers.items()}
        seconds = seconds_to_wait(status, said, headers, now=self.now())
        if seconds is not None:
            self._gate.hold(seconds)
            return _RateLimitedError("GitHub limits the rate of calls: try again later", status=status, said=said)
        return RefusedError(refusal(call.purpose, status, said, headers), status=status, said=said)

    def _location(self, location: str) -> str:
        """Returns a redirect's path below the API's address; refuses others, so that they get no token."""
        base, target = urlsplit(self.url), urlsplit(location)
        is_here = (target.scheme, target.netloc) == (base.scheme, base.netloc)
        if not is_here or not target.path.startswith(f"{base.path}/") or "{" in location or "/../" in location:
            raise UncertainError("GitHub's API sends us to another address: check the address of its API")
        return target.path.removeprefix(base.path)


class _RateLimitedError(RefusedError):
    """GitHub rejected a call because of a rate limit."""


class _Transport(GitHubAPI):
    """gidgethub over aiohttp, with limits, and without following redirects, which would leak the token."""

    def __init__(self, session: aiohttp.ClientSession, requester: str, *, base_url: str) -> None:
        super().__init__(requester, base_url=base_url, cache=AnswerCache())
        self._session = session

    async def send(self, call: Call, authorization: Authorization) -> Any:
        token, jwt = authorization.token, authorization.jwt
        match call.method:
            case "GET":
                return await self.getitem(call.path, call.variables, oauth_token=token, jwt=jwt)
            case "POST":
                body = _NO_BODY if call.body is None else call.body
                return await self.post(call.path, call.variables, data=body, oauth_token=token, jwt=jwt)
            case "PATCH":
                return await self.patch(call.path, call.variables, data=call.body, oauth_token=token, jwt=jwt)

    async def _request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> tuple[int, Mapping[str, str], bytes]:
        async with self._session.request(
            method, url, headers=headers, data=body, allow_redirects=False, timeout=_CALL_TIMEOUT
        ) as response:
            return _known_status(response.status), response.headers, await _read(response.content)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _known_status(status: int) -> int:
    """Maps nonstandard statuses of proxies, such as 520, to standard ones."""
    if status in _KNOWN_STATUSES:
        return status
    return HTTPStatus.BAD_GATEWAY if status >= HTTPStatus.INTERNAL_SERVER_ERROR else HTTPStatus.BAD_REQUEST


async def _read(stream: aiohttp.StreamReader) -> bytes:
    content = bytearray()
    async for chunk in stream.iter_chunked(_CHUNK):
        content += chunk
        if len(content) > _ANSWER_LIMIT:
            raise ValueError("the answer is too long")
    return bytes(content)
