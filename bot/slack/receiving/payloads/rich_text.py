"""The text of a message as its author formatted it, written as Markdown.

Slack keeps it as one `rich_text` block (docs.slack.dev, "Rich text block"). The result is in Slack's escaped form, in
which mentions, channels and links are still marked. If any part of the block is unknown, the flat text is used
instead, because missing words are worse than missing formatting.
"""

import re
from collections.abc import Callable

from bot.slack.message_parts.slack_message import BlockPart, SlackMessage, TextStyle

MAX_CHARACTERS = 60_000
"""The most parts of one message: Slack cuts its text at 40,000 characters."""
_MAX_INDENT, _INDENT = 8, "    "
_MAX_NUMBER = 10_000
_LIST = "rich_text_list"
_PERSON = re.compile(r"[UW][A-Z0-9]{1,30}")
_CHANNEL = re.compile(r"[CDG][A-Z0-9]{1,30}")
_GROUP = re.compile(r"S[A-Z0-9]{1,30}")
_BROADCAST = re.compile(r"[a-z]{1,20}|subteam\^S[A-Z0-9]{1,30}")
_EMOJI = re.compile(r"[\w+\-:]{1,120}")
_LABELLED = re.compile(r"<([#!][^<>|\n]{1,60}+)\|([^<>\n]++)>")
_TICKS = re.compile(r"`++")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class _UnknownPart(Exception):
    """A part that this module cannot read."""


def message_text(message: SlackMessage) -> str:
    """Returns a message's text in Slack's escaped form: as it was formatted if that can be read, else flat."""
    if len(message.blocks) != 1 or message.blocks[0].type != "rich_text":
        return message.text
    try:
        formatted = _RichText(dict(_LABELLED.findall(message.text))).read(message.blocks[0])
    except _UnknownPart:
        return message.text
    return formatted if formatted.strip() and len(formatted) <= MAX_CHARACTERS else message.text


class _RichText:
    """One message. `labels` are the names of channels and groups, which the block lacks and the text has."""

    def __init__(self, labels: dict[str, str]) -> None:
        self._labels = labels

    def read(self, block: BlockPart) -> str:
        read, after = "", ""
        for part in block.elements:
            text = self._part(part).strip("\n")
            if text:
                # A list of several levels comes as several lists; anything else is a separate paragraph.
                read += ("\n" if part.type == after == _LIST else "\n\n") + text
                after = part.type
        return read.strip("\n")

    def _part(self, part: BlockPart) -> str:
        match part.type:
            case "rich_text_section":
                return self._inline(part)
            case "rich_text_list":
                return _bordered(part, self._list(part))
            case "rich_text_quote":
                return _quoted(self._inline(part))
            case "rich_text_preformatted":
                return _bordered(part, self._code(part))
        raise _UnknownPart

    def _list(self, part: BlockPart) -> str:
        indent = _INDENT * min(max(part.indent, 0), _MAX_INDENT)
        first = min(max(part.offset, 0), _MAX_NUMBER) + 1
        lines = []
        for number, item in enumerate(part.elements, first):
            if item.type != "rich_text_section":
                raise _UnknownPart
            mark = f"{number}. " if part.style == "ordered" else "- "
            below = "\n" + indent + " " * len(mark)
            lines.append(indent + mark + below.join(self._inline(item).strip("\n").split("\n")))
        return "\n".join(lines)

    def _code(self, part: BlockPart) -> str:
        code = "".join(self._in_code(element) for element in part.elements).strip("\n")
        fence = _ticks_around(code, at_least=3)
        return f"{fence}\n{code}\n{fence}"

    def _in_code(self, element: BlockPart) -> str:
        """In code, an address is the typed text, not a link, and styles are ignored."""
        if element.type in {"text", "link"}:
            return (element.text or element.url).translate(_ESCAPES)
        return self._element(element)

    def _inline(self, part: BlockPart) -> str:
        return "".join(self._element(element) for element in part.elements)

    def _element(self, element: BlockPart) -> str:
        match element.type:
            case "text":
                words = _styled(element.text.translate(_ESCAPES), element.text_style)
            case "link":
                words = _link(element.url, element.text)
            case "user":
                words = self._reference("@", element.user_id, _PERSON)
            case "channel":
                words = self._reference("#", element.channel_id, _CHANNEL)
            case "usergroup":
                words = self._reference("!subteam^", element.usergroup_id, _GROUP)
            case "broadcast":
                words = self._reference("!", element.range, _BROADCAST)
            case "emoji" if _EMOJI.fullmatch(element.name):
                words = f":{element.name}:"
            case "date" if element.fallback:
                words = element.fallback.translate(_ESCAPES)
            case "color" if element.value:
                words = element.value.translate(_ESCAPES)
            case _:
                raise _UnknownPart
        return words

    def _reference(self, sign: str, target: str, pattern: re.Pattern[str]) -> str:
        if pattern.fullmatch(target) is None:
            raise _UnknownPart
        label = self._labels.get(sign + target)
        return f"<{sign}{target}|{label}>" if label else f"<{sign}{target}>"


def _link(url: str, label: str) -> str:
    if not url or any(character in url for character in "<>|\n"):
        raise _UnknownPart
    words = " ".join(label.split()).translate(_ESCAPES)
    return f"<{url.translate(_ESCAPES)}|{words}>" if words else f"<{url.translate(_ESCAPES)}>"


def _styled(text: str, style: TextStyle) -> str:
    """Puts marks next to the words and ends them with each line; otherwise Markdown does not recognize them."""
    if style.code:
        return _on_each_line(text, _as_code)
    marks = [mark for mark, is_set in (("**", style.bold), ("_", style.italic), ("~~", style.strike)) if is_set]
    return _on_each_line(text, lambda words: "".join(marks) + words + "".join(reversed(marks))) if marks else text


def _on_each_line(text: str, mark: Callable[[str], str]) -> str:
    return "\n".join(
        line.replace(line.strip(), mark(line.strip()), 1) if line.strip() else line for line in text.split("\n")
    )


def _as_code(words: str) -> str:
    ticks = _ticks_around(words, at_least=1)
    return f"{ticks} {words} {ticks}" if "`" in words else f"`{words}`"


def _ticks_around(code: str, *, at_least: int) -> str:
    """Returns more backticks than the code has in a row anywhere, so that those do not end it."""
    return "`" * max([at_least, *(len(ticks) + 1 for ticks in _TICKS.findall(code))])


def _bordered(part: BlockPart, text: str) -> str:
    """Slack draws a border around a list or code within a quotation."""
    return _quoted(text) if part.border == 1 else text


def _quoted(text: str) -> str:
    return "\n".join(f"&gt; {line}".rstrip() for line in text.strip("\n").split("\n"))
