"""Makes foreign text fit to store and show: bounded, and on one line if needed."""

from bot.runtime.text import without_misleading

_LINE_LENGTH = 300


def cut(text: str, limit: int) -> str:
    """Returns a text, or its beginning with an ellipsis: at most `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"


def one_line(text: str, limit: int = _LINE_LENGTH) -> str:
    """Returns the beginning of a text as one line, without control characters and misleading ones."""
    stripped = text.strip()
    shown = "".join(c if c.isprintable() else " " for c in without_misleading(stripped[: 2 * limit]))
    line = " ".join(shown.split())
    return line if len(line) <= limit and len(stripped) <= 2 * limit else f"{line[: limit - 1].rstrip()}…"


def shortened(text: str, limit: int) -> str:
    """Returns at most `limit` characters, without NUL and lone surrogates, which no database accepts."""
    return cut(text.replace("\0", "").encode(errors="replace").decode().strip(), limit)
