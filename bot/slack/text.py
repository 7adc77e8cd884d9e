"""Words of people, agents and APIs made harmless for Slack, and cut to Slack's limits.

Slack reads three characters of a message as markup (`&`, `<`, `>`); escaped, no text can mention, notify or link.
Lengths are counted as Slack's clients count them, in UTF-16 units of the escaped text, which is never too few.
"""

import re
from urllib.parse import urlsplit

ELLIPSIS = "…"
MAX_URL = 3_000
"""Slack's limit for the address of a button."""

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_PERSON = re.compile(r"[UW][A-Z0-9]{1,30}")
_UNSAFE_IN_URL = re.compile(r"[\s|<>\"\\^`{}]")


def clean(text: str) -> str:
    """Without what can't be shown or sent: control characters (line breaks stay) and halves of characters."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _SURROGATE.sub("\ufffd", _CONTROL.sub("", lines))


def escape(text: str) -> str:
    """For a message's `text` and for mrkdwn with `verbatim`: nothing in it is markup any more."""
    return "".join(_ESCAPES.get(character, character) for character in clean(text))


def width(text: str) -> int:
    """The length as Slack's clients count it."""
    return len(text) + sum(character > "\uffff" for character in text)


def shorten(text: str, limit: int) -> str:
    """The escaped text, at most `limit` wide, with an ellipsis where it was cut."""
    escaped = escape(text)
    if width(escaped) <= limit:
        return escaped
    return escape(_head(clean(text), limit - 1)) + ELLIPSIS


def one_line(text: str, limit: int) -> str:
    """The escaped text on one line, at most `limit` wide."""
    return shorten(" ".join(clean(text).split()), limit)


def quote(text: str) -> str:
    """The escaped text as a quotation; each line grows by one."""
    return "\n".join(f">{line}" for line in escape(text).split("\n"))


def pieces(text: str, limit: int) -> list[str]:
    """The text in pieces, each at most `limit` wide as a quotation, cut at a line break or space where one is near."""
    rest, found = clean(text), []
    while rest:
        head = _head(rest, limit - 1)
        if len(head) < len(rest):
            head = head[: _cut(head)]
        found.append(head)
        rest = rest[len(head) :]
    return found


def opening(text: str, *, characters: int, lines: int) -> tuple[str, bool]:
    """The first lines of a text, and whether that is less than the whole of it."""
    whole = clean(text).strip()
    head = "\n".join(whole.split("\n")[:lines])
    if len(head) > characters:
        head = head[:characters]
        head = head[: _cut(head)].rstrip()
    return head, head != whole


def safe_url(text: str | None) -> str | None:
    """The text if it can be a link: an http(s) address with a host, and nothing in it that hides where it leads."""
    if not text or width(text) > MAX_URL or not text.isprintable() or _UNSAFE_IN_URL.search(text):
        return None
    try:
        parts = urlsplit(text)
        named = parts.scheme.lower() in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return text if named and parts.username is None else None


def link(text: str | None, limit: int = 2_000) -> str:
    """The text as a link where it is a safe address that fits, else as escaped text."""
    url = safe_url(text)
    if url is not None and width(escape(url)) + 2 <= limit:
        return f"<{escape(url)}>"
    return one_line(text or "", limit)


def person(user_id: str) -> str:
    """A mention, if this is a Slack user's id; else the escaped text."""
    return f"<@{user_id}>" if _PERSON.fullmatch(user_id) else one_line(user_id, 200)


def _head(text: str, limit: int) -> str:
    """The longest beginning that is at most `limit` wide once escaped and quoted (a line break costs two)."""
    used = 0
    for index, character in enumerate(text):
        used += 2 if character == "\n" else width(_ESCAPES.get(character, character))
        if used > limit:
            return text[:index]
    return text


def _cut(head: str) -> int:
    """Where to end a piece: after the last line break or space in its last fifth, else at its end."""
    near = len(head) * 4 // 5
    at = max(head.rfind("\n", near), head.rfind(" ", near))
    return at + 1 if at >= near and at > 0 else len(head)
