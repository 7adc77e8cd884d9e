"""Markdown that an agent wrote, made harmless for Slack's `markdown` block. Pure.

Slack finds mentions in it, honours `<...>` markup, and makes links of images; there is no `verbatim` for this block. So
whatever could notify somebody, or hide where a link leads, is broken up by a character of no width, in code and outside
of it alike: what Slack takes for code need not be what we do. All else stays as the agent wrote it.
"""

import re
from urllib.parse import urlsplit

from bot.slack.rendering.text import displayable, safe_url

BREAK = "\u2060"
"""Word joiner: no width, and no line break."""

_MENTION = re.compile(r"<(?=[!@#][A-Za-z^])|@(?=(?:here|channel|everyone|group)\b)", re.IGNORECASE)
_LABELLED = re.compile(r"<(?=[a-zA-Z][a-zA-Z0-9+.-]{0,30}:[^<>|\n]{0,3000}\|)")
_LINK_DEFINITION = re.compile(r"^([ \t>*+.0-9-]{0,20}\[[^\[\]\n]{1,500}\])(?=:)", re.MULTILINE)
_LINK = re.compile(
    r"(?P<image>!?)\[(?P<label>[^\[\]]{0,1000})\]\((?P<url>[^()<>\s]{0,2000})(?P<title>\s[^()\n]{0,300})?\)|\](?=\()"
)
_ADDRESS = re.compile(r"://|\w\.\w")
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]{0,30}://", re.IGNORECASE)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")


def defused(text: str) -> str:
    """Returns Markdown for a `markdown` block: nobody is mentioned by it, and each link says where it leads. A fence
    that was cut open is closed.
    """
    text = _LINK.sub(_honest, displayable(text))
    text = _LINK_DEFINITION.sub(rf"\1{BREAK}", text)
    for pattern in (_LABELLED, _MENTION):
        text = pattern.sub(lambda found: f"{found[0]}{BREAK}", text)
    open_fence = _open_fence(text)
    return f"{text}\n{open_fence}" if open_fence else text


def markdown_pieces(text: str, limit: int) -> list[str]:
    """Returns pieces of Markdown of about `limit` characters, cut between lines where that can be; a fence goes on in
    the next piece.
    """
    made, piece = [], ""
    for line in _lines_up_to(text.strip(), limit):
        if piece and len(piece) + len(line) > limit:
            fence = _open_fence(piece)
            made.append(f"{piece}{fence}" if fence else piece)
            piece = f"{fence}\n" if fence else ""
        piece += line
    return [*made, piece] if piece.strip() else made


def _lines_up_to(text: str, limit: int) -> list[str]:
    lines = text.splitlines(keepends=True)
    return [line[at : at + limit] for line in lines for at in range(0, len(line), limit)]


def _honest(found: re.Match[str]) -> str:
    """The link as it was where its words do not hide where it leads, else its words and its address."""
    if found["label"] is None:
        return f"{found[0]}{BREAK}"  # the end of a link that is more than this looks for
    label, url = found["label"], safe_url(found["url"])
    if url is None:
        return label
    if not label.strip():
        return url
    if _ADDRESS.search(label) and not _names(label, url):
        return f"{label} ({url})"
    return f"[{label}]({url})"


def _names(label: str, url: str) -> bool:
    """Whether a label that looks like an address is the beginning of this one."""
    named, address = (_SCHEME.sub("", each.strip()).rstrip("/").lower() for each in (label, url))
    rest = address.removeprefix(named)
    return address.startswith(named) and (not rest or rest[0] in "/?#") and bool(urlsplit(url).hostname)


def _open_fence(text: str) -> str:
    """The fence that is still open at a text's end; empty where there is none."""
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and found[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
    return fence
