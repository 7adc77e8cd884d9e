"""Makes foreign text fit to store and show: bounded, on one line if needed, and without references.

GitHub looks for "@name" and "#123" in rendered text, so escaping them in Markdown does not help. They are split by an
invisible character, as Renovate and others do, so that a code host does not notify people or link or close issues.
"""

import re

from bot.runtime.text import printable_line, without_misleading

_LINE_LENGTH = 300
BREAK = "\u200b"
"""ZERO WIDTH SPACE."""
_ACTS = re.compile(
    r"(?<![A-Za-z0-9])@"  # a person or a team; in a mail address, a letter precedes it
    r"|\#(?=\d)"  # an issue, with or without the name of a repository before it
    r"|[Gg][Hh]-(?=\d)",  # the same
    re.VERBOSE,
)
_PUBLIC_HOST = re.compile(r"https?://(?:www\.)?github\.com(?=/)", re.IGNORECASE)
_REDIRECTING = "https://redirect.github.com"
"""GitHub's own host, which leads to the same page without creating a backlink."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def cut(text: str, limit: int) -> str:
    """Returns a text, or its beginning with an ellipsis: at most `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def one_line(text: str, limit: int = _LINE_LENGTH) -> str:
    """Returns the beginning of a text as one line, without control characters and misleading ones."""
    return printable_line(text.strip()[: 8 * limit], limit)


def shortened(text: str, limit: int) -> str:
    """Returns at most `limit` characters, without NUL and lone surrogates, which no database accepts."""
    return cut(text.replace("\0", "").encode(errors="replace").decode().strip(), limit)


def without_references(text: str) -> str:
    """Returns a text that looks the same but has no references. Links to github.com use its redirecting host."""
    shown = _CONTROL.sub("", without_misleading(text.replace("\r\n", "\n")))
    parted = _ACTS.sub(lambda match: match[0] + BREAK, shown)
    return _PUBLIC_HOST.sub(_REDIRECTING, parted)
