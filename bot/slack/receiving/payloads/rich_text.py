"""The words of a message as their writer set them: lists, quotations and code, which a message's `text` flattens.

Slack's clients send them as one `rich_text` block (docs.slack.dev, "Rich text block"). It is read as Markdown in
Slack's escaped form, in which mentions, channels and links are still marked as such. Where any part of it is not known,
nothing of it is used: better flat words than some left out.
"""

import re
from collections.abc import Callable
from typing import Any

from bot.runtime.json_fields import first_item_at, object_at, objects_at, text_at

MAX_ELEMENTS, MAX_CHARACTERS = 5_000, 60_000
"""Of one message: Slack cuts its text at 40,000 characters."""
_MAX_INDENT, _INDENT = 8, "    "
_MAX_NUMBER = 10_000
_LIST = "rich_text_list"
_REFERENCES = {
    "user": ("@", "user_id", re.compile(r"[UW][A-Z0-9]{1,30}")),
    "channel": ("#", "channel_id", re.compile(r"[CDG][A-Z0-9]{1,30}")),
    "usergroup": ("!subteam^", "usergroup_id", re.compile(r"S[A-Z0-9]{1,30}")),
    "broadcast": ("!", "range", re.compile(r"[a-z]{1,20}|subteam\^S[A-Z0-9]{1,30}")),
}
"""How each begins in Slack's escaped form, and where its element has the target."""
_PLAIN = {"date": "fallback", "color": "value"}
_EMOJI = re.compile(r"[\w+\-:]{1,120}")
_LABELLED = re.compile(r"<([#!][^<>|\n]{1,60}+)\|([^<>\n]++)>")
_TICKS = re.compile(r"`++")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_MARKS = (("bold", "**"), ("italic", "_"), ("strike", "~~"))


class _NotKnown(Exception):
    """A part that this module cannot read."""


def message_text(message: Any) -> str:
    """Returns a message's words in Slack's escaped form: as they were set where that can be read, else flat."""
    text, block = text_at(message, "text"), first_item_at(message, "blocks")
    if text_at(block, "type") != "rich_text" or len(message["blocks"]) > 1:
        return text
    try:
        told = _RichText(dict(_LABELLED.findall(text))).read(block)
    except _NotKnown:
        return text
    return told if told.strip() and len(told) <= MAX_CHARACTERS else text


class _RichText:
    """One message. `labels` are the names of channels and groups, which the text has and the block has not."""

    def __init__(self, labels: dict[str, str]) -> None:
        self._labels = labels
        self._left = MAX_ELEMENTS

    def read(self, block: Any) -> str:
        read, after = "", ""
        for part in self._elements(block):
            kind, text = text_at(part, "type"), self._part(part).strip("\n")
            if text:
                # A list of several levels comes as several lists; anything else stands by itself.
                read += ("\n" if kind == after == _LIST else "\n\n") + text
                after = kind
        return read.strip("\n")

    def _part(self, part: Any) -> str:
        match text_at(part, "type"):
            case "rich_text_section":
                return self._inline(part)
            case "rich_text_list":
                return _bordered(part, self._list(part))
            case "rich_text_quote":
                return _quoted(self._inline(part))
            case "rich_text_preformatted":
                return _bordered(part, self._code(part))
        raise _NotKnown

    def _list(self, part: Any) -> str:
        indent, first = _INDENT * _whole(part, "indent", _MAX_INDENT), _whole(part, "offset", _MAX_NUMBER) + 1
        ordered, items = text_at(part, "style") == "ordered", []
        for number, item in enumerate(self._elements(part), first):
            if text_at(item, "type") != "rich_text_section":
                raise _NotKnown
            mark = f"{number}. " if ordered else "- "
            below = "\n" + indent + " " * len(mark)
            items.append(indent + mark + below.join(self._inline(item).strip("\n").split("\n")))
        return "\n".join(items)

    def _code(self, part: Any) -> str:
        code = "".join(self._in_code(element) for element in self._elements(part)).strip("\n")
        fence = _ticks_around(code, at_least=3)
        return f"{fence}\n{code}\n{fence}"

    def _in_code(self, element: Any) -> str:
        """In code, an address is what was typed; it is no link, and no style counts."""
        if text_at(element, "type") in {"text", "link"}:
            return (text_at(element, "text") or text_at(element, "url")).translate(_ESCAPES)
        return self._element(element)

    def _inline(self, part: Any) -> str:
        return "".join(self._element(element) for element in self._elements(part))

    def _element(self, element: Any) -> str:
        kind, text = text_at(element, "type"), text_at(element, "text")
        if kind in _REFERENCES:
            return self._reference(element, *_REFERENCES[kind])
        if kind == "text":
            return _styled(text.translate(_ESCAPES), object_at(element, "style"))
        if kind == "link":
            return _link(text_at(element, "url"), text)
        if kind == "emoji" and _EMOJI.fullmatch(text_at(element, "name")):
            return f":{text_at(element, 'name')}:"
        if words := text_at(element, _PLAIN.get(kind, "")):
            return words.translate(_ESCAPES)
        raise _NotKnown

    def _reference(self, element: Any, sign: str, key: str, pattern: re.Pattern[str]) -> str:
        target = text_at(element, key)
        if pattern.fullmatch(target) is None:
            raise _NotKnown
        label = self._labels.get(sign + target)
        return f"<{sign}{target}|{label}>" if label else f"<{sign}{target}>"

    def _elements(self, part: Any) -> list[dict[str, Any]]:
        found = objects_at(part, "elements")
        self._left -= len(found)
        if self._left < 0:
            raise _NotKnown
        return found


def _whole(part: Any, key: str, most: int) -> int:
    value = part.get(key)
    return min(max(value, 0), most) if isinstance(value, int) else 0


def _link(url: str, label: str) -> str:
    if not url or any(character in url for character in "<>|\n"):
        raise _NotKnown
    words = " ".join(label.split()).translate(_ESCAPES)
    return f"<{url.translate(_ESCAPES)}|{words}>" if words else f"<{url.translate(_ESCAPES)}>"


def _styled(text: str, style: dict[str, Any]) -> str:
    """Marks stand close to the words, and end with each line, or Markdown does not take them for marks."""
    marks = [mark for name, mark in _MARKS if style.get(name) is True]
    if style.get("code") is True:
        return _on_each_line(text, _as_code)
    return _on_each_line(text, lambda words: "".join(marks) + words + "".join(reversed(marks))) if marks else text


def _on_each_line(text: str, mark: Callable[[str], str]) -> str:
    return "\n".join(
        line.replace(line.strip(), mark(line.strip()), 1) if line.strip() else line for line in text.split("\n")
    )


def _as_code(words: str) -> str:
    ticks = _ticks_around(words, at_least=1)
    return f"{ticks} {words} {ticks}" if "`" in words else f"`{words}`"


def _ticks_around(code: str, *, at_least: int) -> str:
    """Returns more ticks than stand together anywhere in the code, so that none of those ends it."""
    return "`" * max([at_least, *(len(ticks) + 1 for ticks in _TICKS.findall(code))])


def _bordered(part: Any, text: str) -> str:
    """Slack draws a border where a list or code is part of a quotation."""
    return _quoted(text) if part.get("border") == 1 else text


def _quoted(text: str) -> str:
    return "\n".join(f"&gt; {line}".rstrip() for line in text.strip("\n").split("\n"))
