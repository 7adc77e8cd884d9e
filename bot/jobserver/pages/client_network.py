"""Where a request comes from, also behind proxies: as far as what they say can be trusted."""

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

from bot.jobserver.settings.pages import Network

_MOST_HOPS = 10
_WITH_PORT = re.compile(r"\[([0-9A-Fa-f:.]{2,45})\](?::\d{1,5})?|(\d{1,3}(?:\.\d{1,3}){3}):\d{1,5}")
_LONGEST = 64
_NETWORK_BITS = 64


def client_network(peer: str, forwarded_for: Sequence[str], trusted: Sequence[Network]) -> str:
    """Returns the client's address; of IPv6 its network, as whoever has one address there has all of them.

    Proxies add who asked them at the end of X-Forwarded-For. So it is read from there, and only as long as each hop
    is a proxy that is trusted: what a stranger sends along stands further to the left.
    """
    address = _parsed(peer)
    hops = ",".join(forwarded_for[-_MOST_HOPS:]).rsplit(",", _MOST_HOPS)[-_MOST_HOPS:]
    while address is not None and hops and any(address in network for network in trusted):
        before = _parsed(hops.pop())
        if before is None:
            break
        address = before
    return _network(address)


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    """Reads an address, with a port or without; None where it is none."""
    text = text.strip()[:_LONGEST]
    found = _WITH_PORT.fullmatch(text)
    try:
        address = ip_address((found[1] or found[2]) if found else text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _network(address: IPv4Address | IPv6Address | None) -> str:
    if isinstance(address, IPv6Address):
        return f"{IPv6Address(int(address) >> _NETWORK_BITS << _NETWORK_BITS)}/{_NETWORK_BITS}"
    return str(address) if address else ""
