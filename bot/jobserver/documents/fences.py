"""Fenced code, found line by line and at any depth: in lists, quotations, tabs and components too."""

import re
from dataclasses import dataclass

_OPENING = re.compile(r"(?P<fence>`{3,}+|~{3,}+|\${2})(?P<info>.*)", re.DOTALL)
_CONTAINER_SIGNS = " \t>"
_LIST_MARKER = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]")
_CLOSING_INDENT = 3
"""How much further in than its opening a fence may be closed (CommonMark)."""


@dataclass(frozen=True)
class Fence:
    """What opened a block of code. `indent` is in columns of its line, container marks included."""

    sign: str
    length: int
    indent: int

    def is_closed_by(self, line: str) -> bool:
        body = line.lstrip(_CONTAINER_SIGNS)
        mark = body.rstrip()
        if len(mark) < self.length or mark.strip(self.sign):
            return False
        return len(line) - len(body) <= self.indent + _CLOSING_INDENT


def opening_fence(line: str) -> Fence | None:
    """Returns the fence that this line opens; `$$` on a line of its own opens mathematics."""
    indent = _content_start(line)
    match = _OPENING.match(line, indent)
    if match is None:
        return None
    sign = match["fence"][0]
    if sign in match["info"] or (sign == "$" and match["info"].strip()):
        return None
    return Fence(sign, len(match["fence"]), indent)


def _content_start(line: str) -> int:
    position = 0
    while position < len(line):
        if line[position] in _CONTAINER_SIGNS:
            position += 1
        elif match := _LIST_MARKER.match(line, position):
            position = match.end()
        else:
            break
    return position
