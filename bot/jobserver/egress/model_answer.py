"""What a model's answer tells while it passes the relay: its usage, and whether it is complete."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from bot.jobserver.egress.model_api import ModelApi
from bot.jobserver.text import cut, one_line
from bot.jobserver.usage import Spent
from bot.runtime.untrusted_json import object_at, value_at

_MOST_WORDS = 300
_LONGEST_LINE = 1 << 20
"""Bytes of a line, or of a whole JSON response, that is parsed for its usage."""
_MOST_TOKENS = 10**9
_ERROR = re.compile(rb'"error"\s*:\s*[{"]|"type"\s*:\s*"error"')
_TELLING = re.compile(rb'"usage|"error"')


class ModelAnswer:
    """Reads a response: events, or one JSON object. An event's numbers include earlier ones.

    `fault`: why it is not a complete answer; None if it is one, and as long as it is being read.
    """

    def __init__(self, api: ModelApi) -> None:
        self._api = api
        self.tokens = Spent()
        self.fault: str | None = None
        self._is_complete = False
        self._line = bytearray()
        self._is_too_long = False

    def feed(self, data: bytes) -> None:
        """Accepts the next piece."""
        first, newline, rest = data.partition(b"\n")
        self._add(first)
        if not newline:
            return
        self._read()
        whole, _, unfinished = rest.rpartition(b"\n")
        is_telling = _TELLING.search(whole) or self._api.ends.search(whole)  # most pieces are not
        for line in whole.split(b"\n") if is_telling else ():
            self._add(line)
            self._read()
        self._add(unfinished)

    def finish(self, *, has_events: bool) -> None:
        """Accepts the end; events have to say themselves that the answer is complete."""
        self._read()
        if has_events:
            self.cut()

    def cut(self) -> None:
        """Accepts an end that the provider did not mean, unless everything was said before."""
        if not self._is_complete and self.fault is None:
            self.fault = "its model's answer was cut off"

    def refused(self, status: int, body: bytes) -> None:
        """Accepts an error in place of an answer."""
        self.fault = f"its model's API answered with an error ({status}): {_error(body) or 'without a reason'}"

    def _add(self, part: bytes) -> None:
        self._is_too_long |= len(self._line) + len(part) > _LONGEST_LINE
        if not self._is_too_long:
            self._line += part

    def _read(self) -> None:
        line, is_whole = bytes(self._line), not self._is_too_long
        self._line.clear()
        self._is_too_long = False
        if not is_whole:
            self._is_complete = True  # nobody knows what it said
            return
        self._is_complete |= self._api.ends.search(line) is not None
        text = line.strip().removeprefix(b"data:")
        if _ERROR.search(line) and (words := _error(text)) is not None:
            self.fault = f"its model's answer ended in an error: {words}"
        for usage in _usages(text) if b'"usage' in line else ():
            told = Spent(_sum(usage, self._api.sent), _sum(usage, self._api.answered))
            self.tokens = Spent(max(self.tokens.sent, told.sent), max(self.tokens.answered, told.answered))


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _error(text: bytes) -> str | None:
    """Returns the error that an event or body is about, or None."""
    event = _parsed(text)
    if error := value_at(event, "error") or value_at(event, "response", "error"):
        return _words(error)
    return _words(event) if value_at(event, "type") == "error" else None


def _words(error: object) -> str:
    told = error.get("message") if isinstance(error, dict) else error
    return cut(one_line(told), _MOST_WORDS) if isinstance(told, str) and told.strip() else "without a reason"


def _usages(text: bytes) -> Iterator[Mapping[str, Any]]:
    event = _parsed(text)
    for holder in (event, value_at(event, "message"), value_at(event, "response")):
        yield from filter(None, (object_at(holder, name) for name in ("usage", "usageMetadata")))


def _sum(usage: Mapping[str, Any], names: tuple[str, ...]) -> int:
    values = (usage.get(name) for name in names)
    return sum(value for value in values if type(value) is int and 0 <= value <= _MOST_TOKENS)
