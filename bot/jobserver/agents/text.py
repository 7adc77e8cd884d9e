"""Foreign text, made fit to be shown: bounded, on one line where there is one, and without the agent's secrets."""

from collections.abc import Iterable

from bot.runtime.text import without_misleading

_LINE_LENGTH = 300
_SHORTEST_SECRET = 8
"""Characters: shorter values, such as a region's name, are no secrets, and stand in many texts."""


def one_line(text: str, limit: int = _LINE_LENGTH) -> str:
    """Returns a text's beginning as one line without control characters."""
    shown = "".join(c if c.isprintable() else " " for c in without_misleading(text[: 2 * limit]))
    line = " ".join(shown.split())
    return line if len(line) <= limit and len(text) <= 2 * limit else f"{line[: limit - 1].rstrip()}…"


class Redactor:
    """Takes values that must not be shown out of a text."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted({s for s in secrets if len(s) >= _SHORTEST_SECRET}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
        return text
