"""Ports for servers that have to come back at the same one."""

import random
import socket

_BELOW_EPHEMERAL = range(20_000, 32_000)
"""Linux and macOS give their own choice from higher ones: a connection of anybody could get one of those meanwhile."""


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on, and that the system gives to nobody who did not ask for it."""
    while True:
        port = random.SystemRandom().choice(_BELOW_EPHEMERAL)  # tests seed the other one, several of them alike
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
