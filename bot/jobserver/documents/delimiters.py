"""Finds where tags, expressions in braces and fenced code begin and end. Each search takes linear time."""

import re
from dataclasses import dataclass

from bot.jobserver.documents.page import line_end

_TAG_NAME = re.compile(r"/?(?P<name>[A-Za-z][\w.-]*(?::[\w.-]+)?)?")
_IN_TAG = re.compile(r"[\"'{<>]")
_IN_EXPRESSION = re.compile(r"[\"'`{}]|/\*|//")
_QUOTES = "\"'"
_FENCE = re.compile(r"(?P<fence>`{3,}+|~{3,}+|\${2})(?P<info>.*)", re.DOTALL)
_CONTAINER_SIGNS = " \t>"
_LIST_MARKER = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]")
_CLOSING_INDENT = 3
"""Columns by which a closing fence may be indented further than the opening one (CommonMark)."""


@dataclass(frozen=True)
class Tag:
    """A tag of HTML or JSX as it was written; `name` is empty for `<>`."""

    name: str
    start: int
    end: int
    is_closing: bool
    is_empty: bool


class UnclosedBraceError(Exception):
    """A brace is not closed, so the rest of the page cannot be told apart from code."""


def tag_at(text: str, start: int, *, jsx: bool) -> Tag | None:
    """Returns the tag that begins at `<`; None if there is none.

    Raises:
        UnclosedBraceError: a brace in an attribute is not closed.
    """
    match = _TAG_NAME.match(text, start + 1)
    name = match["name"] if match else None
    position = match.end() if match else start + 1
    is_closing = text.startswith("/", start + 1)
    if name is None:
        if jsx and text.startswith(">", position):
            return Tag("", start, position + 1, is_closing, is_empty=False)
        return None
    if not text[position : position + 1].isspace() and text[position : position + 1] not in {">", "/", "{"}:
        return None
    end = _tag_end(text, position, jsx=jsx)
    return None if end is None else Tag(name, start, end, is_closing, is_empty=text[end - 2] == "/")


def _tag_end(text: str, position: int, *, jsx: bool) -> int | None:
    while match := _IN_TAG.search(text, position):
        sign = match[0]
        if sign == ">":
            return match.end()
        if sign == "<":
            return None
        if sign == "{":
            position = expression_end(text, match.start()) if jsx else match.end()
            continue
        closing = text.find(sign, match.end())
        if closing < 0 or text[match.start() - 1] != "=":
            return None
        position = closing + 1
    return None


def expression_end(text: str, start: int) -> int:
    """Returns the position after the brace that closes the one at `start`; ignores braces in strings and comments.

    Raises:
        UnclosedBraceError: there is none.
    """
    depth, position = 1, start + 1
    while match := _IN_EXPRESSION.search(text, position):
        sign, position = match[0], match.end()
        if sign in "{}":
            depth += 1 if sign == "{" else -1
            if not depth:
                return position
        else:
            position = _past(text, sign, position)
    raise UnclosedBraceError


def _past(text: str, sign: str, position: int) -> int:
    """Returns the position after a string or comment. A quotation mark not closed in its line is an apostrophe."""
    if sign == "//":
        is_address = text[position - 3 : position - 2] == ":"
        return position if is_address else line_end(text, position)
    closing = {"/*": "*/"}.get(sign, sign)
    limit = line_end(text, position) if sign in _QUOTES else len(text)
    found = text.find(closing, position, limit)
    if found < 0 and sign not in _QUOTES:
        raise UnclosedBraceError
    return position if found < 0 else found + len(closing)


@dataclass(frozen=True)
class Fence:
    """The opening of a block of code, in a list, quotation, tab or component too.

    `indent` is the column that it starts in, after the marks of its containers.
    """

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
    """Returns the fence that this line opens; `$$` on a line of its own opens a formula."""
    indent = _content_start(line)
    match = _FENCE.match(line, indent)
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
