"""Decides which IP addresses programs may reach: those known to be on the public internet, and not this machine's."""

import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

_EMBEDS_IPV4 = (
    IPv6Network("::/96"),  # compatible with IPv4, deprecated by RFC 4291
    IPv6Network("::ffff:0:0/96"),  # mapped
    IPv6Network("::ffff:0:0:0/96"),  # translated, RFC 2765
    IPv6Network("64:ff9b::/96"),  # NAT64, RFC 6052
    IPv6Network("64:ff9b:1::/48"),  # NAT64 in a network of its own, RFC 8215
    IPv6Network("2001::/32"),  # Teredo
    IPv6Network("2002::/16"),  # 6to4
)
"""Networks that embed an IPv4 address, which would not be checked."""
_GLOBAL_UNICAST = IPv6Network("2000::/3")
"""The space allocated for global unicast (iana.org, IPv6 address space)."""
_RELAY_OF_6TO4 = "192.88.99."
_METADATA_SERVICES = (
    IPv4Address("100.100.100.200"),  # Alibaba
    IPv4Address("168.63.129.16"),  # Azure, which looks like a public one
    IPv4Address("192.0.0.192"),  # Oracle
    IPv6Address("fd00:42::42"),  # Scaleway
    IPv6Address("fd00:ec2::254"),  # Amazon
    IPv6Address("fd20:ce::254"),  # Google
)
"""Addresses of clouds' metadata services, which serve keys, except link-local ones."""
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Resolves a name to addresses; raises OSError if there are none."""


def is_public(text: str) -> bool:
    """Whether an address is on the public internet."""
    address = _parsed(text)
    if address is None:
        return False
    if isinstance(address, IPv6Address):
        return _is_global(address) and address in _GLOBAL_UNICAST and not _embeds_ipv4(address)
    return _is_global(address) and not text.startswith(_RELAY_OF_6TO4)


def may_be_internal(text: str) -> bool:
    """Whether an address may be reached if private ones are allowed: never link-local, never a metadata service."""
    address = _parsed(text)
    if address is None:
        return False
    if isinstance(address, IPv6Address) and _embeds_ipv4(address) and not address.is_loopback:
        return False
    return not (address.is_link_local or address.is_multicast or address.is_unspecified)


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    """Returns the address; None for text that is none, and for a cloud's metadata service."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return None if address in _METADATA_SERVICES else address


def _is_global(address: IPv4Address | IPv6Address) -> bool:
    return address.is_global and not address.is_multicast and not address.is_reserved and not address.is_unspecified


def _embeds_ipv4(address: IPv6Address) -> bool:
    return any(address in network for network in _EMBEDS_IPV4)


def is_this_machines(address: str) -> bool:
    """Whether an address belongs to this machine: a socket can be bound to it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True
