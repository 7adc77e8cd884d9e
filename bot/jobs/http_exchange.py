"""One request to the job API and its answer, over aiohttp."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import aiohttp
from yarl import URL

from bot.jobs.job_api_proxy import job_api_proxy
from bot.jobs.settings import JobApiSettings
from bot.jobs.wire import MAX_BODY


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request. `url` is encoded; `headers` come on top of those that every request has."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer. `body` is None where it did not come in whole; of one longer than MAX_BODY it is a little more than
    that. The names of `headers` are found in any case.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes | None


class HttpSender(Protocol):
    """Sends requests to a job API."""

    async def send(self, request: HttpRequest) -> HttpAnswer:
        """Sends one request, once: redirects are not followed. Raises what the library raises where no answer came."""

    async def aclose(self) -> None:
        """Closes every connection."""


class HttpConnections:
    """HttpSender over sockets. Polls share kept-alive connections; every other request has one of its own.

    A kept connection that the server closes just as a request goes out looks like one cut while the server was at
    work. A poll is then repeated by aiohttp, once; a POST must not be (and is not: aiohttp repeats only idempotent
    methods), so it would end as "may have arrived" for nothing. A handshake is cheap at the rate people write.

    Raises:
        ConfigError: The proxy is neither http nor https.
    """

    def __init__(self, settings: JobApiSettings, headers: Mapping[str, str]) -> None:
        self._settings = settings
        self._headers = headers
        self._proxy = job_api_proxy(settings.base_url)
        self._tls = ssl.create_default_context()
        # Well below the whole, so that what runs out while connecting is known not to have arrived.
        connect = min(settings.connect_timeout, settings.timeout / 2)
        self._timeout = aiohttp.ClientTimeout(total=settings.timeout, connect=connect, sock_connect=connect)
        self._polls: aiohttp.ClientSession | None = None
        self._others: aiohttp.ClientSession | None = None

    async def send(self, request: HttpRequest) -> HttpAnswer:
        """See HttpSender."""
        async with self._session(request.method).request(
            request.method,
            URL(request.url, encoded=True),
            headers=request.headers,
            data=request.content,
            allow_redirects=False,
        ) as response:
            return HttpAnswer(response.status, response.headers, await _read(response))

    async def aclose(self) -> None:
        """See HttpSender."""
        for session in (self._polls, self._others):
            if session is not None:
                await session.close()

    def _session(self, method: str) -> aiohttp.ClientSession:  # made by the first request, for it needs a running loop
        if method == "GET":
            self._polls = self._polls or self._opened(keep=True)
            return self._polls
        self._others = self._others or self._opened(keep=False)
        return self._others

    def _opened(self, *, keep: bool) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._settings.max_connections, ssl=self._tls, force_close=not keep),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers=self._headers,
            timeout=self._timeout,
            proxy=self._proxy,
        )


async def _read(response: aiohttp.ClientResponse) -> bytes | None:
    body = bytearray()
    try:
        while chunk := await response.content.readany():
            body += chunk
            if len(body) > MAX_BODY:
                break
    except Exception:  # noqa: BLE001 - whatever cut it off, the status counts, even if its body never came
        return None
    return bytes(body)
