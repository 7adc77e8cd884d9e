"""The server's own proxy (HTTPS_PROXY, NO_PROXY), for the model relay and listed hosts."""

import asyncio
import base64
import functools
import ssl
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import h11

from bot.jobserver.settings.sandbox import AllowedHost
from bot.runtime.http.proxies import is_this_machine, proxy_address

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_HEAD_BYTES = 8_192


class UpstreamProxyError(Exception):
    """The proxy refused to connect. `status` is 0 if its response was not HTTP."""

    def __init__(self, status: int = 0) -> None:
        super().__init__(f"the proxy answered with the status {status}")
        self.status = status


async def connect_through(address: str, name: str, port: int) -> Streams:
    """Returns a connection to a host through a proxy.

    The proxy's `address` is `http://host:port` or `https://host:port`, optionally with a user name and password.

    Raises:
        OSError: the proxy cannot be reached.
        UpstreamProxyError: it does not connect to this host.
    """
    parts, target = urlsplit(address), f"{name}:{port}"
    headers = [("host", target)]
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers.append(("proxy-authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"))
    request = h11.Connection(h11.CLIENT).send(h11.Request(method="CONNECT", target=target, headers=headers))
    tls = _tls() if parts.scheme == "https" else None
    reader, writer = await asyncio.open_connection(
        parts.hostname, parts.port or {"http": 80, "https": 443}[parts.scheme], ssl=tls
    )
    try:
        writer.write(request or b"")
        await _answer(reader)
    except BaseException:
        writer.close()
        raise
    return reader, writer


def proxy_for(address: str) -> str | None:
    """Returns the proxy for an address. aiohttp's `trust_env` would also send passwords from ~/.netrc.

    Raises:
        ConfigError: it is neither http nor https.
    """
    parts = urlsplit(address)
    host, proxies = parts.hostname or "", getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    return None if not found or is_this_machine(host) or proxy_bypass(host) else proxy_address(found)


def upstream_of(host: AllowedHost) -> str | None:
    """Returns the proxy for a listed host; None for a private one, whose address is checked here.

    Raises:
        ConfigError: it is neither http nor https.
    """
    return None if host.may_be_private else proxy_for(f"https://{host.name}:{host.port}")


@functools.cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


async def _answer(reader: asyncio.StreamReader) -> None:
    """Reads the head of the proxy's response, and not a byte beyond it."""
    parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
    parser.send(h11.Request(method="CONNECT", target="a:1", headers=[("host", "a:1")]))
    parser.send(h11.EndOfMessage())
    try:
        parser.receive_data(await reader.readuntil(b"\r\n\r\n"))
        answer = parser.next_event()
    except (h11.RemoteProtocolError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise UpstreamProxyError from None
    if not isinstance(answer, h11.Response) or not 200 <= answer.status_code < 300:  # noqa: PLR2004 - it has connected
        raise UpstreamProxyError(getattr(answer, "status_code", 0))
