"""Addresses at which nothing answers."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

_ENOUGH = 8
"""Connections that fill the shortest backlog of any system."""


@contextmanager
def mute_port() -> Iterator[int]:
    """Returns a port that accepts connections and never sends anything."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@contextmanager
def black_hole_port() -> Iterator[int]:
    """Returns a port at which connection attempts get no answer, as behind a firewall: its backlog is full."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        for _ in range(_ENOUGH):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address)
        yield address[1]
