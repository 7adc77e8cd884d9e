"""Addresses in running text, and their hosts in a form that is safe to show: in ASCII, where no character of another
script looks like a Latin one. Pure.

Sources: UTS 46 (IDNA), and the WHATWG URL standard for what browsers take for a number.
"""

import ipaddress
import re
import unicodedata

import idna

MAX_HOST = 253
_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?")
_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9a-fA-F]*)\.?")


def ascii_host(host: str) -> str | None:
    """Returns the host in ASCII, other scripts as punycode; None if it disguises its target or is not a host.

    Addresses must be plain, such as `127.0.0.1` and `[::1]`: browsers also accept `2130706433` and `0x7f.1`.
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


_DOTS = ".\u00b7\u0660\u06f0\u0701\u0702\u2027\u2219\u22c5\u3002\u30fb\ua4f8\ua60e"
"""Characters that look like the dot of a host once decomposed (Unicode Technical Standard 39, and IDNA's own)."""
_ADDRESS = re.compile(rf"://|\w\s{{0,3}}[{_DOTS}][^\W\d_]|(?:\d{{1,3}}[{_DOTS}]){{3}}\d")
_EMPHASIS = str.maketrans("", "", "*_~")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,30}://", re.IGNORECASE)
_BARE = re.compile(r"(?P<scheme>https?:)//(?P<authority>[^\s/?#<>\"'`()\[\]|]*)", re.IGNORECASE)
_PLAIN_HOST = re.compile(r"[A-Za-z0-9._-]*(?::[0-9]*)?")
_AFTER_HOST = "*_~.,;:!"
"""ASCII characters that may follow a host and do not belong to it."""


def looks_like_an_address(words: str) -> bool:
    """Returns whether people may read it as an address, even with invisible or look-alike characters."""
    # Each by itself: normalizing a text takes quadratic time in its accents, and here their order is the same.
    decomposed = "".join(unicodedata.normalize("NFKD", sign) for sign in words)
    seen = "".join(sign for sign in decomposed if unicodedata.category(sign) not in {"Mn", "Me", "Cf"})
    return bool(_ADDRESS.search(seen) or _ADDRESS.search(seen.translate(_EMPHASIS)))


def is_beginning(words: str, url: str) -> bool:
    """Returns whether text that looks like an address is the beginning of `url`, including its whole host."""
    named, address = (_without_scheme(each).rstrip("/").lower() for each in (words, url))
    rest = address.removeprefix(named)
    return words.isascii() and address.startswith(named) and (not rest or rest[0] in "/?#")


def _without_scheme(address: str) -> str:
    found = _SCHEME.match(address)
    return address[found.end() :] if found else address


def with_plain_addresses(text: str, separator: str) -> str:
    """Returns the text with the hosts of its addresses in ASCII. An address that disguises its host, such as with a
    name and an `@`, is broken up by the separator.
    """
    return _BARE.sub(lambda found: _plain(found, separator), text)


def _plain(found: re.Match[str], separator: str) -> str:
    authority = found["authority"].rstrip(_AFTER_HOST)
    after = found["authority"][len(authority) :]
    plain = _PLAIN_HOST.match(authority)
    host, rest = (plain[0], authority[plain.end() :]) if plain else ("", authority)
    if not rest:
        return found[0]
    if host and _is_foreign_punctuation(rest[0]):
        return f"{found['scheme']}//{host} {rest}{after}"
    name, colon, port = authority.partition(":")
    spelled = None if port.strip("0123456789") else ascii_host(name)
    if spelled is None:
        return found[0].replace("//", f"{separator}//", 1)
    return f"{found['scheme']}//{spelled}{colon}{port}{after}"


def _is_foreign_punctuation(sign: str) -> bool:
    """Recognizes, for example, the ideographic full stop: it ends sentences, but browsers read it as a dot."""
    return not sign.isascii() and unicodedata.category(sign).startswith("P")
