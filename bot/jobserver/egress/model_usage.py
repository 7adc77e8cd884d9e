"""Counts the tokens that a model's answers report; what cannot be read is not counted."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_LONGEST = 1 << 20
"""Bytes of a line, or of an answer in one piece, that is read."""
_MOST_TOKENS = 10**9
_NAME = b'"usage'
_SENT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "prompt_tokens", "promptTokenCount")
_ANSWERED = ("output_tokens", "completion_tokens", "candidatesTokenCount", "thoughtsTokenCount")


@dataclass(frozen=True)
class Tokens:
    """How many were sent, and how many came back."""

    sent: int = 0
    answered: int = 0

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(self.sent + other.sent, self.answered + other.answered)


class AnswerUsage:
    """Reads along with one answer: events, or JSON in one piece. An event's numbers include those of earlier ones."""

    def __init__(self) -> None:
        self.tokens = Tokens()
        self._line = bytearray()
        self._is_too_long = False

    def feed(self, data: bytes) -> None:
        """Takes the next piece."""
        first, newline, rest = data.partition(b"\n")
        self._add(first)
        if not newline:
            return
        self._read()
        whole, _, unfinished = rest.rpartition(b"\n")
        for line in whole.split(b"\n") if _NAME in whole else ():  # most pieces tell nothing of it
            self._add(line)
            self._read()
        self._add(unfinished)

    def finish(self) -> None:
        self._read()

    def _add(self, part: bytes) -> None:
        self._is_too_long |= len(self._line) + len(part) > _LONGEST
        if not self._is_too_long:
            self._line += part

    def _read(self) -> None:
        line, is_whole = bytes(self._line), not self._is_too_long
        self._line.clear()
        self._is_too_long = False
        if not is_whole or _NAME not in line:
            return
        for usage in _usages(line.strip().removeprefix(b"data:")):
            told = Tokens(_sum(usage, _SENT), _sum(usage, _ANSWERED))
            self.tokens = Tokens(max(self.tokens.sent, told.sent), max(self.tokens.answered, told.answered))


def _usages(text: bytes) -> Iterator[Mapping[str, Any]]:
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return
    inner = (event.get(name) for name in ("message", "response")) if isinstance(event, dict) else ()
    for holder in (event, *inner):
        if isinstance(holder, dict):
            yield from (holder[name] for name in ("usage", "usageMetadata") if isinstance(holder.get(name), dict))


def _sum(usage: Mapping[str, Any], names: tuple[str, ...]) -> int:
    values = (usage.get(name) for name in names)
    return sum(value for value in values if type(value) is int and 0 <= value <= _MOST_TOKENS)
