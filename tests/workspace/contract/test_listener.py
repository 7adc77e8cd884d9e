"""The workspace's listening socket. A socket that is left open fails the test, as any unclosed resource does."""

import asyncio
import gc
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from aiohttp import web

from bot.runtime.http.server import listening_socket
from bot.workspace.listener import Listener

ROUNDS = 20
HOST = "127.0.0.1"


def test_of_two_that_want_a_port_at_the_same_moment_one_gets_it() -> None:
    """Both may bind it: then only listening fails."""
    with listening_socket(HOST, 0) as free:
        port = int(free.getsockname()[1])
    together = Barrier(2, timeout=30)

    async def try_to_listen() -> list[bool]:
        listened = []
        for _ in range(ROUNDS):
            listener = Listener()
            together.wait()
            try:
                await listener.start(web.Application(), HOST, port)
            except OSError:
                listened.append(False)
            else:
                listened.append(True)
            together.wait()
            await listener.stop()
        return listened

    with ThreadPoolExecutor(2) as threads:
        one, other = [threads.submit(asyncio.run, try_to_listen()) for _ in range(2)]
        for rounds in zip(one.result(), other.result(), strict=True):
            assert sum(rounds) <= 1
    gc.collect()
