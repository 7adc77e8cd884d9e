"""The transport of the job API's client: httpx's requests over aiohttp's connections."""

import ssl

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from bot.jobapi.settings import JobApiSettings, job_api_proxy


class _Response(aiohttp.ClientResponse):
    """Drops the reason phrase: httpx would log this free text, and httpx-aiohttp fails if it is not UTF-8."""

    async def start(self, connection: aiohttp.connector.Connection) -> "_Response":
        await super().start(connection)
        self.reason = ""
        return self


class JobApiTransport(httpx.AsyncBaseTransport):
    """Polls share kept-alive connections; every POST uses a new one.

    If the server closes a kept-alive connection just as a request is sent, this looks like a connection lost while the
    server was working. aiohttp then repeats a poll once. It must not repeat a POST (and does not: it repeats only
    idempotent methods), so the POST would needlessly end as "may have arrived". A handshake is cheap at the rate at
    which people write.
    """

    def __init__(self, settings: JobApiSettings) -> None:
        proxy = job_api_proxy(settings.base_url)
        tls = _tls(settings.base_url, proxy)
        self._polls = _pool(settings, proxy, tls, keep=True)
        self._posts = _pool(settings, proxy, tls, keep=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        pool = self._polls if request.method == "GET" else self._posts
        return await pool.handle_async_request(request)

    async def aclose(self) -> None:
        await self._polls.aclose()
        await self._posts.aclose()


def _tls(base_url: str, proxy: httpx.Proxy | None) -> ssl.SSLContext:
    """Loading the trusted certificates takes 20 ms. Without them no server is trusted, and plain HTTP needs none."""
    urls = [httpx.URL(base_url), *([proxy.url] if proxy else [])]
    if any(url.scheme == "https" for url in urls):
        return httpx.create_ssl_context()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _pool(settings: JobApiSettings, proxy: httpx.Proxy | None, tls: ssl.SSLContext, *, keep: bool) -> AiohttpTransport:
    def session() -> aiohttp.ClientSession:  # called by the first request, because it needs a running loop
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=settings.max_connections, ssl=tls, force_close=not keep),
            cookie_jar=aiohttp.DummyCookieJar(),
            response_class=_Response,
        )

    return AiohttpTransport(client=session, proxy=proxy, verify=tls)
