"""The transport of the job API's client: httpx's requests over aiohttp's connections."""

import ssl
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from bot.errors import ConfigError
from bot.jobapi.settings import JobApiSettings
from bot.jobapi.wire import MAX_BODY, unzipped
from bot.runtime.http.proxies import MALFORMED, is_this_machine, proxy_address

HEADERS = {
    "Accept": "application/json",
    # A job is short. A server that compresses its answers all the same is read, too.
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
}


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


def job_api_proxy(base_url: str) -> httpx.Proxy | None:
    """Returns the environment's proxy for a URL; None for this machine itself and the hosts in NO_PROXY.

    Raises:
        ConfigError: The proxy that would be used is neither http nor https.
    """
    # Not aiohttp's trust_env: it reads the environment in a thread for every request, and takes passwords from
    # ~/.netrc, which clash with our own Authorization.
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    proxies = getproxies()
    address = proxies.get(parts.scheme) or proxies.get("all")
    if not address or is_this_machine(host) or proxy_bypass(host):
        return None
    checked = proxy_address(address)
    try:
        return httpx.Proxy(checked)
    except (ValueError, httpx.InvalidURL):
        pass
    # Raised outside of the except clause, because the library's message quotes the URL.
    raise ConfigError([MALFORMED])


async def read_body(response: httpx.Response, most: int = MAX_BODY) -> bytes:
    """Returns the body, decompressed. Stops soon after so many bytes, and a longer body counts as unreadable."""
    body = bytearray()
    if not isinstance(response.stream, httpx.AsyncByteStream):
        raise TypeError("the transport answers without a stream")
    async for chunk in response.stream:
        body += chunk
        if len(body) > most:
            break
    return unzipped(bytes(body))
