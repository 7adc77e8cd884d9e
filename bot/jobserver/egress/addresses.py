"""Which IP addresses are on the public internet: what is not known to be is refused. Pure."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

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
"""Through these, an address of IPv4 is reached that nobody has looked at."""
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


def is_public(text: str) -> bool:
    """Returns whether an address is one of the public internet's."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if address in _OF_CLOUDS:
        return False
    if isinstance(address, IPv6Address):
        return (
            _is_global(address)
            and address in _ON_THE_INTERNET
            and not any(address in network for network in _CARRIES_IPV4)
        )
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
