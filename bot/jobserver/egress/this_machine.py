"""Which of the listed hosts this machine serves itself: its services often trust whoever is on the same machine."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Sequence

from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.jobserver.settings.hosts import AllowedHost
from bot.jobserver.settings.sandbox import OPEN

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a name; OSError where there are none."""
_WITHIN_S = 2.0


def is_this_machines(address: str) -> bool:
    """Returns whether an address is this machine's own: to any of them a socket can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


async def served_here(
    hosts: Sequence[AllowedHost], resolve: Resolve, *, within_s: float = _WITHIN_S
) -> list[AllowedHost]:
    """Returns those whose names lead to this machine; what cannot be looked up in time is left out."""

    async def is_here(host: AllowedHost) -> bool:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(within_s):
                return any(map(is_this_machines, await resolve(host.name, host.port)))
        return False

    found = await asyncio.gather(*map(is_here, hosts))
    return [host for host, here in zip(hosts, found, strict=True) if here]


async def egress_warning(settings: JobServerSettings, resolve: Resolve) -> str | None:
    """Returns what whoever runs the server should know of EGRESS, in words."""
    if not settings.runs_programs:
        return None
    if settings.egress == OPEN:
        return f"programs and agents reach all that this machine reaches: {PREFIX}EGRESS can list hosts"
    others = [host for host in settings.egress if host.port != settings.port]
    here = ", ".join(f"{host.name}:{host.port}" for host in await served_here(others, resolve))
    return f"{PREFIX}EGRESS lets programs and agents reach {here} on this machine itself" if here else None
