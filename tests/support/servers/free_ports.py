"""Ports for servers that have to restart at the same one."""

import random
import socket

_BELOW_EPHEMERAL = range(20_000, 32_000)
"""Linux and macOS choose theirs from higher ones: any connection could get one of those meanwhile."""


def free_port() -> int:
    """Returns a port of 127.0.0.1 that nothing listens on and that the system assigns only on request."""
    while True:
        port = random.SystemRandom().choice(_BELOW_EPHEMERAL)  # tests seed the other one, some identically
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
