"""Rules about proxies that all edges share: the form of a proxy's URL, and which hosts never go through one."""

import ipaddress
from urllib.parse import urlsplit

from bot.errors import ConfigError

MALFORMED = "The proxy in the environment (HTTPS_PROXY, ALL_PROXY, ...) must be http://host:port."


def proxy_address(value: str) -> str:
    """Returns a proxy's URL with its scheme. Raises ConfigError if it is not http or https, without quoting it."""
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
    """Returns whether a host name or address always means this machine, without resolving it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
