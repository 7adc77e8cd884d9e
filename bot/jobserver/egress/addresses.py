"""Which IP addresses programs may reach: those known to be on the public internet, and not this machine's."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.jobserver.settings.sandbox import OPEN, AllowedHost

_CARRIES_IPV4 = tuple(
    map(
        IPv6Network,
        (
            "::/96",  # compatible with IPv4, deprecated by RFC 4291
            "::ffff:0:0/96",  # mapped
            "::ffff:0:0:0/96",  # translated, RFC 2765
            "64:ff9b::/96",  # NAT64, RFC 6052
            "64:ff9b:1::/48",  # NAT64 in a network of its own, RFC 8215
            "2001::/32",  # Teredo
            "2002::/16",  # 6to4
        ),
    )
)
"""These lead to an IPv4 address that was not checked."""
_ON_THE_INTERNET = IPv6Network("2000::/3")
"""All that is given out for it (iana.org, IPv6 address space)."""
_RELAY_OF_6TO4 = "192.88.99."
_OF_CLOUDS = frozenset(
    map(
        ip_address,
        (
            "100.100.100.200",  # Alibaba
            "168.63.129.16",  # Azure, which looks like a public one
            "192.0.0.192",  # Oracle
            "fd00:42::42",  # Scaleway
            "fd00:ec2::254",  # Amazon
            "fd20:ce::254",  # Google
        ),
    )
)
"""Where clouds tell a machine its keys, besides the addresses that only its link knows."""
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a name; OSError where there are none."""
_WITHIN_S = 2.0


def is_public(text: str) -> bool:
    """Returns whether an address is one of the public internet's."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if address in _OF_CLOUDS:
        return False
    if isinstance(address, IPv6Address):
        return _is_global(address) and address in _ON_THE_INTERNET and not _carries_ipv4(address)
    return _is_global(address) and not text.startswith(_RELAY_OF_6TO4)


def may_be_internal(text: str) -> bool:
    """Returns whether an address may be reached where private ones are allowed: never one that only this link knows,
    and never a cloud's metadata service.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if address in _OF_CLOUDS:
        return False
    if isinstance(address, IPv6Address) and _carries_ipv4(address) and not address.is_loopback:
        return False
    return not (address.is_link_local or address.is_multicast or address.is_unspecified)


def _is_global(address: IPv4Address | IPv6Address) -> bool:
    return address.is_global and not address.is_multicast and not address.is_reserved and not address.is_unspecified


def _carries_ipv4(address: IPv6Address) -> bool:
    return any(address in network for network in _CARRIES_IPV4)


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
    """Returns those whose names lead to this machine: its services often trust whoever is on the same machine.

    What cannot be looked up in time is left out.
    """

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
