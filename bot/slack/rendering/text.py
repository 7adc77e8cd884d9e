"""Escapes texts of people, agents and APIs for Slack, cuts them to Slack's limits, and shows addresses in a safe form:
in ASCII, where no character of another script looks like a Latin one. Pure.

Three characters are markup in a message (`&`, `<`, `>`). If they are escaped, no text can mention, notify or link.
Lengths are counted as Slack's clients do, in UTF-16 units of the escaped text, which never underestimates them.

Sources: UTS 46 (IDNA), and the WHATWG URL standard for what browsers take for a number.
"""

import html
import ipaddress
import re
import time
import unicodedata
from urllib.parse import urlsplit

import idna

from bot.notices.said import ELLIPSIS, Markup
from bot.runtime.text import displayable, without_misleading

BREAK = "\u2060"
"""Word joiner: zero width, and no line break."""
MAX_URL = 3_000
"""Slack's limit for the address of a button."""

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_PERSON = re.compile(r"[UW][A-Z0-9]{1,30}")
_PORT = re.compile(r":[0-9]*\Z")
_UNSAFE_IN_URL = re.compile(r"[\s|<>\"\\^`{}]")


def escape(text: str) -> Markup:
    """Escapes a text for a message's `text` and for mrkdwn with `verbatim`, so that it contains no markup."""
    return Markup(html.escape(displayable(text), quote=False))


def width(text: str) -> int:
    """Returns the length as Slack's clients count it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def shorten(text: str, limit: int) -> Markup:
    """Returns the escaped text, at most `limit` wide, with an ellipsis where it was cut."""
    escaped = escape(text)
    if width(escaped) <= limit:
        return escaped
    return Markup(escape(_head(displayable(text), limit - 1)) + ELLIPSIS)


def shorten_plain(text: str, limit: int) -> str:
    """Returns text for a place where Slack interprets no markup, at most `limit` wide."""
    shown = displayable(text)
    return shown if width(shown) <= limit else fitting(shown, limit - 1) + ELLIPSIS


def fitting(text: str, limit: int) -> str:
    """Returns the longest beginning that is at most `limit` wide."""
    used = 0
    for index, character in enumerate(text[:limit]):
        used += width(character)
        if used > limit:
            return text[:index]
    return text[:limit]


def one_line(text: str, limit: int = 100) -> Markup:
    """Returns the escaped text on one line, at most `limit` wide."""
    return shorten(" ".join(displayable(text).split()), limit)


def label(text: str, limit: int) -> str:
    """Returns text on one line for a place where Slack should interpret no markup, cut before a word that does not fit.
    If Slack does interpret it, it mentions nobody.
    """
    shown, cut = opening(" ".join(text.split()), characters=limit - 1, lines=1)
    return (f"{shown}{ELLIPSIS}" if cut or not shown else shown).replace("<", f"<{BREAK}")


def quote(text: str) -> Markup:
    """Returns the escaped text as a quotation; each line grows by one."""
    return Markup("\n".join(f">{line}" for line in escape(text).split("\n")))


def pieces(text: str, limit: int) -> list[str]:
    """Returns pieces of the text, each at most `limit` wide as a quotation, cut at a line break or space if near."""
    rest, found = displayable(text), []
    while rest:
        head = _head(rest, limit - 1)
        if len(head) < len(rest):
            head = head[: _cut(head)]
        found.append(head)
        rest = rest[len(head) :]
    return found


def opening(text: str, *, characters: int, lines: int) -> tuple[str, bool]:
    """Returns the first lines of a text, and whether anything is left out."""
    whole = displayable(text).strip()
    head = "\n".join(whole.split("\n")[:lines])
    if len(head) > characters:
        head = head[:characters]
        head = head[: _cut(head)].rstrip()
    return head, head != whole


def safe_url(text: str | None) -> str | None:
    """Returns the text if it can be a link: an http(s) URL with an undisguised host, in ASCII."""
    if not text or width(text) > MAX_URL or not text.isprintable():
        return None
    if _UNSAFE_IN_URL.search(text) or without_misleading(text) != text:
        return None
    try:
        parts = urlsplit(text)
        named = parts.scheme.lower() in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return _with_ascii_host(text, parts.netloc) if named and parts.username is None else None


def _with_ascii_host(url: str, netloc: str) -> str | None:
    found = _PORT.search(netloc)
    port = found[0] if found else ""
    host = ascii_host(netloc.removesuffix(port))
    before, _, after = url.partition("//")
    return f"{before}//{host}{port}{after.removeprefix(netloc)}" if host else None


def link(text: str | None, limit: int = 1_500) -> Markup:
    """Returns the text as a link if it is a safe URL that fits; otherwise as escaped text."""
    url = safe_url(text)
    if url is not None and width(escape(url)) + 2 <= limit:
        return Markup(f"<{escape(url)}>")
    return one_line(text or "", limit)


def person(user_id: str) -> Markup:
    """Returns a mention, if this is a Slack user's id; else the escaped text."""
    return Markup(f"<@{user_id}>") if _PERSON.fullmatch(user_id) else one_line(user_id, 200)


def channel(channel_id: str) -> Markup:
    """Returns a link to a channel, by its id."""
    return Markup(f"<#{one_line(channel_id, 50)}>")


def moment(seconds: int) -> Markup:
    """Returns a time of day in each reader's time zone; in UTC if that cannot be shown."""
    return Markup(f"<!date^{seconds}^{{time}}|{time.strftime('%H:%M', time.gmtime(seconds))} UTC>")


def day_and_time(seconds: float) -> Markup:
    """Returns a date and time, and how long ago it was, in each reader's time zone; if that
    cannot be shown, in UTC.
    """
    utc = time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))
    return Markup(f"<!date^{int(seconds)}^{{date_short_pretty}} {{time}} ({{ago}})|{utc} UTC>")


def _head(text: str, limit: int) -> str:
    """Returns the longest beginning that is at most `limit` wide once escaped and quoted (a line break costs two)."""
    if len(text) * len("&amp;") <= limit:  # no character is wider
        return text
    used = 0
    for index, character in enumerate(text):
        used += 2 if character == "\n" else width(_ESCAPES.get(character, character))
        if used > limit:
            return text[:index]
    return text


def _cut(head: str) -> int:
    """Returns where to end a piece: after the last line break or space in its last fifth, else at its end."""
    near = len(head) * 4 // 5
    at = max(head.rfind("\n", near), head.rfind(" ", near))
    return at + 1 if at >= near and at > 0 else len(head)


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
