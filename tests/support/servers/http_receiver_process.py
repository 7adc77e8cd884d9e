"""The HTTP receiver in its own process, so that its memory can be measured: it writes its port to standard output, and
ends with its standard input.
"""

import asyncio
import logging
import sys
from functools import partial

from support.worlds.listening_world import listening

from bot.runtime.http.server import listening_socket
from bot.runtime.rotating_secrets import RotatingSecret
from bot.slack.receiving.http_receiver import HttpReceiver


async def serve(secret: str) -> None:
    """Serves until standard input is closed."""
    logging.disable()
    async with listening() as world:
        receiver = HttpReceiver(world.app, RotatingSecret(secret), listen=partial(listening_socket, "127.0.0.1", 0))
        await receiver.start()
        sys.stdout.write(f"{receiver.port}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)
        await receiver.stop(1)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
