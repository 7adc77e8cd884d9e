"""Escapes texts of people, agents and APIs for Slack, and cuts them to Slack's limits.

Three characters are markup in a message (`&`, `<`, `>`). If they are escaped, no text can mention, notify or link.
Lengths are counted as Slack's clients do, in UTF-16 units of the escaped text, which never underestimates them.
"""

import re
import time
from urllib.parse import urlsplit

from bot.notices.said import ELLIPSIS, Markup
from bot.runtime.text import displayable, without_misleading
from bot.slack.rendering.addresses import ascii_host

MAX_URL = 3_000
"""Slack's limit for the address of a button."""

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_PERSON = re.compile(r"[UW][A-Z0-9]{1,30}")
_PORT = re.compile(r":[0-9]*\Z")
_UNSAFE_IN_URL = re.compile(r"[\s|<>\"\\^`{}]")


def escape(text: str) -> Markup:
    """Escapes a text for a message's `text` and for mrkdwn with `verbatim`, so that it contains no markup."""
    return Markup("".join(_ESCAPES.get(character, character) for character in displayable(text)))


def width(text: str) -> int:
    """Returns the length as Slack's clients count it."""
    return len(text) + sum(character > "\uffff" for character in text)


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


def one_line(text: str, limit: int) -> Markup:
    """Returns the escaped text on one line, at most `limit` wide."""
    return shorten(" ".join(displayable(text).split()), limit)


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
