"""How a GitHub for tests answers wrongly, where a test says so."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


@dataclass(frozen=True)
class Fault:
    """One wrong answer. `applied`: the call is carried out anyway. `status` None: the connection is cut. `happens` is
    called before the answer.
    """

    status: int | None
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    applied: bool = False
    happens: Callable[[], object] = lambda: None

    def answer(self, request: web.Request) -> web.Response:
        self.happens()
        if self.status is None:
            assert request.transport is not None
            request.transport.abort()
        return web.Response(status=self.status or 500, body=self.body, headers=self.headers)


def error(status: int, message: str, *, applied: bool = False, headers: Mapping[str, str] | None = None) -> Fault:
    """An error in GitHub's format."""
    body = {"message": message, "documentation_url": "https://docs.github.com/rest", "status": str(status)}
    given = {"Content-Type": "application/json; charset=utf-8", **(headers or {})}
    return Fault(status, json.dumps(body).encode(), given, applied)


def rate_limited(reset: float, status: int = 403) -> Fault:
    """The primary rate limit; `reset` is in seconds since the epoch."""
    headers = {"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(int(reset))}
    return error(status, "API rate limit exceeded for user ID 1.", headers=headers)


def secondary_limit(retry_after: int | None = None, status: int = 403) -> Fault:
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return error(status, "You have exceeded a secondary rate limit. Please wait a few minutes.", headers=headers)


def broken(status: int = 502, *, applied: bool = False) -> Fault:
    """A proxy's page."""
    return Fault(status, b"<html><title>Unicorn!</title></html>", {"Content-Type": "text/html"}, applied)


def cut(*, applied: bool = False) -> Fault:
    return Fault(None, applied=applied)


def nonsense(content: bytes = b'{"number": "', *, applied: bool = False, status: int = 200) -> Fault:
    return Fault(status, content, {"Content-Type": "application/json"}, applied)


class Faults:
    """The armed faults: each answers the next matching calls."""

    def __init__(self) -> None:
        self._armed: list[tuple[str, re.Pattern[str], Fault]] = []

    def arm(self, method: str, path: str, fault: Fault, *, times: int = 1) -> None:
        """Arms a fault for calls whose whole path, below the API's own, matches."""
        self._armed += [(method, re.compile(path), fault)] * times

    def take(self, method: str, path: str) -> Fault | None:
        for number, (armed_method, armed_path, fault) in enumerate(self._armed):
            if method == armed_method and armed_path.fullmatch(path):
                del self._armed[number]
                return fault
        return None

    @property
    def left(self) -> list[Any]:
        return self._armed
