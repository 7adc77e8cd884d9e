"""What the edges have in common about proxies: the form of a proxy's address, and what never goes through one."""

import ipaddress
from urllib.parse import urlsplit

from bot.errors import ConfigError

MALFORMED = "The proxy in the environment (HTTPS_PROXY, ALL_PROXY, ...) must be http://host:port."


def proxy_address(value: str) -> str:
    """The address with its scheme. ConfigError, which does not quote it, for one that is neither http nor https."""
    address = value.strip() if "://" in value else f"http://{value.strip()}"
    try:
        parts = urlsplit(address)
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound or not address.isprintable() or " " in address:
        raise ConfigError([MALFORMED])
    return address


def is_this_machine(host: str) -> bool:
    """Whether a name or address is this machine's own, by itself alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
