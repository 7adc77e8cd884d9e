"""Answers health checks while the bot starts, which lasts as long as Slack cannot be reached."""

import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web

from bot.errors import CannotStart
from bot.runtime.health.report import ComponentStatus, Health
from bot.runtime.http.health_page import HealthPage
from bot.runtime.http.server import listening_socket

logger = logging.getLogger(__name__)

Listen = Callable[[str, int], socket.socket]
"""Returns a listening socket for a host and port."""


def listen_on(host: str, port: int) -> socket.socket:
    """Returns a listening socket. Raises CannotStart if the address cannot be used."""
    try:
        return listening_socket(host, port)
    except OSError as error:
        raise CannotStart(f"it {error.strerror or error}. Choose another port or address.") from None


@asynccontextmanager
async def early_health(addresses: Iterable[tuple[str, int]]) -> AsyncIterator[Listen]:
    """Answers 200 to `/health/live`, 503 to the other health checks, and nothing else, at these hosts and ports.

    Yields the function by which the servers that take over get their sockets. They listen before the context ends, so
    that no request is refused in between.
    """
    began, early = time.monotonic(), dict[tuple[str, int], socket.socket]()

    def starting() -> Iterator[ComponentStatus]:
        seconds, reason = time.monotonic() - began, "the database or Slack has not answered yet"
        yield ComponentStatus("start", seconds, reason, critical=True, grace_seconds=0.0)

    def taken_over(host: str, port: int) -> socket.socket:
        return early[host, port].dup() if (host, port) in early else listen_on(host, port)

    async with AsyncExitStack() as stack:
        for address in addresses:
            early[address] = stack.enter_context(listen_on(*address))
            page = HealthPage(Health(starting), early[address].dup, [web.route("*", "/{_:.*}", _no_answer)])
            stack.push_async_callback(page.stop)
            await page.start()
            logger.info("health checks are served on %s, port %d", *address)
        yield taken_over


async def _no_answer(request: web.Request) -> web.Response:
    """Closes the connection, as if nothing listened: Slack then sends its request again, and a refusal would be one."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
