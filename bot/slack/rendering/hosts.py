"""Hosts of addresses as they can be shown: in ASCII, where no sign of another script stands for a Latin one. Pure.

Sources: UTS 46 (IDNA), and the WHATWG URL standard for what browsers take for a number.
"""

import ipaddress
import re

import idna

MAX_HOST = 253
_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?")
_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9a-fA-F]*)\.?")


def ascii_host(host: str) -> str | None:
    """Returns the host in ASCII, other scripts as punycode; None where it hides where it leads, or is none.

    Of numbers only `127.0.0.1` and `[::1]` are plain: browsers also take `2130706433` and `0x7f.1` for these.
    """
    if len(host) > MAX_HOST:
        return None
    if host.startswith("["):
        return host if _is_plain_ipv6(host) else None
    if not host.isascii():
        host = _punycode(host)
    if not _NAME.fullmatch(host) or (_NUMBER.fullmatch(host) and not _is_plain_ipv4(host)):
        return None
    return host


def _punycode(host: str) -> str:
    try:
        return idna.encode(host, uts46=True, std3_rules=True).decode("ascii")
    except UnicodeError:
        return ""


def _is_plain_ipv4(host: str) -> bool:
    try:
        return bool(ipaddress.IPv4Address(host))
    except ValueError:
        return False


def _is_plain_ipv6(host: str) -> bool:
    try:
        return host.endswith("]") and "%" not in host and bool(ipaddress.IPv6Address(host[1:-1]))
    except ValueError:
        return False
