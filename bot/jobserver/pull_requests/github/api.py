"""Calls GitHub's REST API, retries calls if that is safe, and classifies failures by their remedy.

CodeHostError
├── RefusedError      GitHub rejected the call: tell the person
└── UncertainError    no valid answer: check whether the call was carried out, then retry
"""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Literal

from bot.codehosts.github_client import GitHubAnswer, GitHubClient, NoGitHubAnswerError
from bot.jobserver.errors import CodeHostError
from bot.jobserver.repository.credentials import TokenSource
from bot.jobserver.settings import PREFIX
from bot.runtime.backoff import Backoff

_RENAMED = (
    "GitHub has another address for this repository, which may have been renamed: "
    f"set {PREFIX}REPOSITORY to its address now"
)
NOT_UNDERSTOOD = "GitHub's answer makes no sense; is the address of its API right?"
_NOT_FOUND = f"GitHub shows no such repository: check {PREFIX}REPOSITORY, and that the token or App has access to it"
_NOT_KNOWN = (
    f"GitHub does not accept the token: make a new one, and give it as {PREFIX}GITHUB_TOKEN; "
    "a token can also have expired or been revoked"
)
_APP_NOT_FOUND = "the GitHub App is not installed for this repository: install it at GitHub, in the App's settings"
_APP_NOT_KNOWN = (
    f"GitHub does not know the App: check {PREFIX}GITHUB_APP_ID and {PREFIX}GITHUB_APP_PRIVATE_KEY, "
    "and that this machine's clock is right"
)
LONGEST_PATIENCE_S = 60.0
"""The longest time that a call waits for rate limits to end, all its attempts together."""
ATTEMPTS = 4
BACKOFF = Backoff(first=0.5, longest=8.0, spread=(0.5, 1.0))


class RefusedError(CodeHostError):
    """A status from 300 to 499. `said` is GitHub's own message in one line, to distinguish cases."""

    def __init__(self, words: str, *, status: int, said: str) -> None:
        self.status = status
        self.said = said
        super().__init__(words)


class UncertainError(CodeHostError):
    """The call may have been carried out, or not."""


@dataclass(frozen=True)
class Purpose:
    """The purpose of a call, as the end of "GitHub did not …", and the permission that it needs.

    `is_of_app`: it is called with the App's own JWT.
    """

    doing: str
    permission: str
    is_of_app: bool = False


READ = Purpose("read the repository", "Metadata: read")
READ_PULL_REQUESTS = Purpose("read pull requests", "Pull requests: read and write")
OPEN = Purpose("open a pull request", "Pull requests: read and write")
UPDATE = Purpose("change a pull request", "Pull requests: read and write")
LABEL = Purpose("label a pull request", "Pull requests: read and write")
REQUEST_REVIEW = Purpose("ask for a review", "Pull requests: read and write")
READ_CHECKS = Purpose("read the checks of commits", "Checks: read")
READ_STATUSES = Purpose("read the statuses of commits", "Commit statuses: read")
FIND_INSTALLATION = Purpose("find where the App is installed", "Metadata: read", is_of_app=True)
MAKE_TOKEN = Purpose("make a token for the App", "Metadata: read", is_of_app=True)


def refusal(purpose: Purpose, status: int, said: str) -> str:
    """Returns an explanation of a status from 400 to 499; GitHub's own words name most remedies."""
    match status:
        case 401:
            return _APP_NOT_KNOWN if purpose.is_of_app else _NOT_KNOWN
        case 403 if "not accessible by" in said or "Must have" in said:
            return (
                f"the token or App may not {purpose.doing}: give it the permission {purpose.permission}, "
                "and accept it for the organisation where GitHub asks for that"
            )
        case 404:
            return _APP_NOT_FOUND if purpose.is_of_app else _NOT_FOUND
        case _:
            return f"GitHub did not {purpose.doing}: {said}"


@dataclass(frozen=True)
class Call:
    """One call. `path` is quoted; `body` is sent as JSON; `is_repeatable` if it is idempotent."""

    method: Literal["GET", "POST", "PATCH"]
    path: str
    purpose: Purpose
    body: Mapping[str, Any] | None = None
    is_repeatable: bool = True


@dataclass
class GitHubRestApi:
    """Makes calls with retries. All wait while a rate limit lasts, since GitHub may ban clients that continue."""

    client: GitHubClient
    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _held_until: float = field(default=0.0, init=False)

    async def call(self, call: Call, tokens: TokenSource) -> Any:
        """Makes a call. Returns parsed JSON.

        Raises:
            CodeHostError: one of the classes in `errors`.
        """
        token = await tokens.token()  # to make one is tried several times already
        failures, patience = 0, LONGEST_PATIENCE_S
        while True:
            patience = await self._wait(patience)
            try:
                return await self._call_once(call, tokens, token)
            except _RateLimitedError:
                failures += 1
                if failures >= ATTEMPTS:
                    raise
            except UncertainError:
                failures += 1
                if failures >= ATTEMPTS or not call.is_repeatable:
                    raise
                await self.pause(failures)

    async def send(
        self, method: str, path: str, tokens: TokenSource, body: Mapping[str, Any] | None, *, etag: str = ""
    ) -> GitHubAnswer:
        """Makes one call, and returns an answer of any status. While a rate limit lasts, it says so instead.

        Raises:
            NoGitHubAnswerError: see `GitHubClient`.
            CodeHostError: there is no token.
        """
        if (held := self._held_until - self.now()) > 0:
            return GitHubAnswer(HTTPStatus.TOO_MANY_REQUESTS, {"retry-after": str(math.ceil(held))}, None)
        answer = await self._send(method, path, tokens, await tokens.token(), body, etag=etag)
        self._note_limit(answer)
        return answer

    async def pause(self, failures: int) -> None:
        await self.sleep(BACKOFF.delay(failures, jitter=random.random()))  # noqa: S311 - spreads load

    async def _send(
        self, method: str, path: str, tokens: TokenSource, token: str, body: Mapping[str, Any] | None, *, etag: str = ""
    ) -> GitHubAnswer:
        """Makes one call, and once more if its token was refused and could be renewed."""
        answer = await self.client.send(method, path, token, body, etag=etag)
        if answer.status == HTTPStatus.UNAUTHORIZED and await tokens.renew(token):
            return await self.client.send(method, path, await tokens.token(), body, etag=etag)
        return answer

    async def _wait(self, patience: float) -> float:
        """Waits until calls may be made, and returns what is left of `patience`; both are in seconds.

        Raises:
            CodeHostError: the rate limit lasts longer.
        """
        while (seconds := self._held_until - self.now()) > 0:
            if seconds > patience:
                end = datetime.fromtimestamp(math.ceil(self._held_until / 60) * 60, UTC)
                raise CodeHostError(f"GitHub lets nothing through until {end:%H:%M} UTC: it limits the rate of calls")
            await self.sleep(seconds)
            patience -= seconds
        return patience

    async def _call_once(self, call: Call, tokens: TokenSource, token: str) -> Any:
        try:
            answer = await self._send(call.method, call.path, tokens, token, call.body)
        except NoGitHubAnswerError as error:
            if error.is_unreadable:
                raise UncertainError(NOT_UNDERSTOOD) from None
            words = f"GitHub cannot be reached at {self.client.url} ({error}): check the network, then try again"
            raise UncertainError(words) from None
        if answer.status < HTTPStatus.MULTIPLE_CHOICES:
            return answer.data
        if answer.status < HTTPStatus.BAD_REQUEST:
            raise RefusedError(_RENAMED, status=answer.status, said="")
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise UncertainError(f"GitHub has a fault of its own ({answer.status}): try again later")
        raise self._refused(call, answer)

    def _refused(self, call: Call, answer: GitHubAnswer) -> RefusedError:
        status, said = answer.status, answer.said
        if self._note_limit(answer):
            return _RateLimitedError("GitHub limits the rate of calls: try again later", status=status, said=said)
        return RefusedError(refusal(call.purpose, status, said), status=status, said=said)

    def _note_limit(self, answer: GitHubAnswer) -> bool:
        """Returns whether an answer is about a rate limit, which everybody obeys from now on."""
        seconds = answer.seconds_to_wait(self.now())
        if seconds is not None:
            self._held_until = max(self._held_until, self.now() + seconds)
        return seconds is not None


class _RateLimitedError(RefusedError):
    """GitHub rejected a call because of a rate limit."""
