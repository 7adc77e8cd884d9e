"""Addresses that stand among words: whether words name one, whether it is this one, and those by themselves. Pure."""

import re
import unicodedata

from bot.slack.rendering.hosts import ascii_host

_DOTS = ".\u00b7\u0660\u06f0\u0701\u0702\u2027\u2219\u22c5\u3002\u30fb\ua4f8\ua60e"
"""What looks like the dot of a host (Unicode Technical Standard 39, and IDNA's own), once it is decomposed."""
_ADDRESS = re.compile(rf"://|\w\s{{0,3}}[{_DOTS}][^\W\d_]|(?:\d{{1,3}}[{_DOTS}]){{3}}\d")
_EMPHASIS = str.maketrans("", "", "*_~")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,30}://", re.IGNORECASE)
_BARE = re.compile(r"(?P<scheme>https?:)//(?P<authority>[^\s/?#<>\"'`()\[\]|]*)", re.IGNORECASE)
_PLAIN_HOST = re.compile(r"[A-Za-z0-9._-]*(?::[0-9]*)?")
_AFTER_HOST = "*_~.,;:!"
"""ASCII signs that may follow a host, and are none of it."""


def looks_like_an_address(words: str) -> bool:
    """Whether people may read an address in them, be it set with signs that are not seen or stand for others."""
    decomposed = unicodedata.normalize("NFKD", words)
    seen = "".join(sign for sign in decomposed if unicodedata.category(sign) not in {"Mn", "Me", "Cf"})
    return bool(_ADDRESS.search(seen) or _ADDRESS.search(seen.translate(_EMPHASIS)))


def is_beginning(words: str, url: str) -> bool:
    """Whether words that look like an address are the beginning of this one, its whole host included."""
    named, address = (_without_scheme(each).rstrip("/").lower() for each in (words, url))
    rest = address.removeprefix(named)
    return words.isascii() and address.startswith(named) and (not rest or rest[0] in "/?#")


def _without_scheme(address: str) -> str:
    found = _SCHEME.match(address)
    return address[found.end() :] if found else address


def with_plain_addresses(text: str, separator: str) -> str:
    """Returns the text with the hosts of its addresses in ASCII; an address that hides its host, as behind a name and
    an `@`, is broken up by the separator.
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
    """Such as the ideographic full stop: a sentence goes on after it, but browsers take it for a dot."""
    return not sign.isascii() and unicodedata.category(sign).startswith("P")
