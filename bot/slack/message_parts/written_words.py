"""The words of a message as its author formatted them, written as Markdown.

Slack keeps typed words as a `rich_text` block, and pasted tables as `table` blocks, in the message or in an attachment
without an origin; apps write others (docs.slack.dev, "Blocks"). The result is in Slack's escaped form, in which
mentions, channels and links are still marked. If any part of rich text is unknown, the flat text is used instead,
because missing words are worse than missing formatting.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bot.runtime.text import longer_run
from bot.slack.message_parts.slack_message import BlockPart, MessageAttachment, SlackMessage, TextStyle

MAX_CHARACTERS = 80_000
"""The most words of one message: Slack cuts its text at 40,000 characters, and tables have 20,000 at most."""
_MAX_DEPTH = 10
_MAX_INDENT, _INDENT = 8, "    "
_PERSON = re.compile(r"[UW][A-Z0-9]{1,30}")
_CHANNEL = re.compile(r"[CDG][A-Z0-9]{1,30}")
_GROUP = re.compile(r"S[A-Z0-9]{1,30}")
_BROADCAST = re.compile(r"[a-z]{1,20}|subteam\^S[A-Z0-9]{1,30}")
_EMOJI = re.compile(r"[\w+\-:]{1,120}")
_LABELLED = re.compile(r"<([#!][^<>|\n]{1,60}+)\|([^<>\n]++)>")
_PIPES = {ord("|"): "\\|"}
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ESCAPES_IN_CELLS = {**_ESCAPES, **_PIPES}
_INLINE = frozenset({"text", "link", "user", "channel", "usergroup", "broadcast", "emoji", "date", "color"})


_TYPED, _TOO_LONG = "rich_text", "too long"
_WITHOUT_WORDS = frozenset({"actions", "context_actions", "divider", "image"})
"""Blocks that can be without words."""


@dataclass(frozen=True)
class WrittenWords:
    """The words of a message. `missing` are the types of blocks whose words are not among them."""

    text: str
    missing: tuple[str, ...] = ()


def written_words(message: SlackMessage) -> WrittenWords:
    """Returns a message's words in Slack's escaped form: the formatted ones if they can be read, else the flat text;
    then what was pasted into it.
    """
    own = _text_and_blocks(message.text, message.blocks, is_summary=bool(message.bot_id))
    text, missing = own.text, [*own.missing]
    for attachment in message.attachments:
        if attachment.is_own:
            words = _of_attachment(attachment)
            joined = _paragraphs((text, words.text))
            fits = len(joined) <= MAX_CHARACTERS
            text = joined if fits else text
            missing += words.missing if fits else [_TOO_LONG]
    return WrittenWords(text, tuple(missing))


def message_text(message: SlackMessage) -> str:
    """Returns the text of `written_words`."""
    return written_words(message).text


def pasted_words(message: SlackMessage) -> Sequence[WrittenWords]:
    """Returns the words of what is no text: of a message's other blocks, and of its own attachments."""
    blocks = [_written(block, {}) for block in message.blocks if block.type != _TYPED]
    return [*blocks, *(_of_attachment(attachment) for attachment in message.attachments if attachment.is_own)]


def attachment_text(attachment: MessageAttachment) -> str:
    """Returns an attachment's words; the fallback is for clients that cannot show it."""
    return _of_attachment(attachment).text or attachment.fallback


def _of_attachment(attachment: MessageAttachment) -> WrittenWords:
    fields = (": ".join(filter(None, (field.title, field.value))) for field in attachment.fields)
    flat = "\n".join(filter(None, (attachment.pretext, attachment.text, *fields)))
    blocks = [*attachment.blocks]
    for shown in attachment.message_blocks:
        blocks += shown.message.blocks
        blocks += (block for pasted in shown.message.attachments for block in pasted.blocks)
    return _text_and_blocks(flat, blocks)


def _text_and_blocks(flat: str, blocks: Sequence[BlockPart], *, is_summary: bool = False) -> WrittenWords:
    """Returns the words of blocks. `flat` is the same without formatting, or maybe only a summary."""
    labels = dict(_LABELLED.findall(flat))
    written = [(block.type == _TYPED, _written(block, labels)) for block in blocks]
    if flat.strip() and any(typed and (words.missing or not words.text.strip()) for typed, words in written):
        written = [(True, WrittenWords(flat)), *((typed, words) for typed, words in written if not typed)]
    text = _paragraphs(words.text for _, words in written)
    if len(text) > MAX_CHARACTERS:
        return WrittenWords(flat, () if all(typed for typed, _ in written) else (_TOO_LONG,))
    if is_summary and not all(typed for typed, _ in written):
        text = max(text, flat, key=len)
    return WrittenWords(text or flat, tuple(kind for _, words in written for kind in words.missing))


def _paragraphs(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text.strip())


def _written(block: BlockPart, labels: dict[str, str]) -> WrittenWords:
    writer = _Writer(labels)
    text = writer.written(block).strip("\n")
    if block.type == _TYPED:
        return WrittenWords(text, (block.type,) if writer.unknown else ())
    return WrittenWords(text, () if text or block.type in _WITHOUT_WORDS else (block.type,))


class _Writer:
    """Writes one block. `labels` are the names of channels and groups, which the block lacks and the text has.
    `unknown`: a part of rich text was not.
    """

    def __init__(self, labels: dict[str, str]) -> None:
        self._labels = labels
        self._escapes = _ESCAPES
        self._depth = 0
        self.unknown = False

    def written(self, part: BlockPart) -> str:
        """Returns the text that people see in a block or any part of one."""
        if self._depth == _MAX_DEPTH:
            self.unknown = True
            return ""
        self._depth += 1
        text = self._of_kind(part)
        self._depth -= 1
        return text

    def _of_kind(self, part: BlockPart) -> str:
        match part.type:
            case "rich_text":
                words = self._rich(part)
            case "table" | "data_table":
                words = self._table(part)
            case "mrkdwn" | "markdown":
                words = part.text if self._escapes is _ESCAPES else part.text.translate(_PIPES)
            case "plain_text" | "raw_text" | "raw_number":
                words = self._plain(part.text or ("" if part.number is None else str(part.number)))
            case kind if kind.startswith("rich_text_") or kind in _INLINE:
                words = self._in_rich_text(part)
            case _:
                words = _lines(map(self.written, part.parts))
        return words

    def _plain(self, text: str) -> str:
        return text.translate(self._escapes)

    def _table(self, part: BlockPart) -> str:
        """Writes a table of Markdown: each cell on one line, and the first row as its heading."""
        escapes, self._escapes = self._escapes, _ESCAPES_IN_CELLS
        rows = [["&lt;br&gt;".join(self.written(cell).split("\n")) for cell in row] for row in part.rows]
        self._escapes = escapes
        width = max(map(len, rows), default=0)
        if not any(map(any, rows)):
            return ""
        first, *others = ([*row, *[""] * (width - len(row))] for row in rows)
        lines = (f"| {' | '.join(row)} |" for row in (first, ["---"] * width, *others))
        return _lines((*map(self.written, part.caption), "\n".join(lines)), between="\n\n")

    def _rich(self, block: BlockPart) -> str:
        read, after = "", ""
        for part in block.elements:
            text = self.written(part).strip("\n")
            if text:
                # A list of several levels comes as several lists; anything else is a separate paragraph.
                read += ("\n" if part.type == after == "rich_text_list" else "\n\n") + text
                after = part.type
        return read.strip("\n")

    def _in_rich_text(self, part: BlockPart) -> str:
        match part.type:
            case "rich_text_section":
                return self._inline(part)
            case "rich_text_list":
                return _bordered(part, self._list(part))
            case "rich_text_quote":
                return _quoted(self._inline(part))
            case "rich_text_preformatted":
                return _bordered(part, self._code(part))
        return self._element(part)

    def _list(self, part: BlockPart) -> str:
        indent = _INDENT * min(max(part.indent, 0), _MAX_INDENT)
        first = min(max(part.offset, 0), 10_000) + 1
        lines = []
        for number, item in enumerate(part.elements, first):
            self.unknown |= item.type != "rich_text_section"
            mark = f"{number}. " if part.style == "ordered" else "- "
            below = "\n" + indent + " " * len(mark)
            lines.append(indent + mark + below.join(self.written(item).strip("\n").split("\n")))
        return "\n".join(lines)

    def _code(self, part: BlockPart) -> str:
        code = "".join(self._in_code(element) for element in part.elements).strip("\n")
        fence = longer_run(code, "`", at_least=3)
        return f"{fence}\n{code}\n{fence}"

    def _in_code(self, element: BlockPart) -> str:
        """In code, an address is the typed text, not a link, and styles are ignored."""
        if element.type in {"text", "link"}:
            return self._plain(element.text or element.url)
        return self._element(element)

    def _inline(self, part: BlockPart) -> str:
        return "".join(self._element(element) for element in part.elements)

    def _element(self, element: BlockPart) -> str:
        words = ""
        match element.type:
            case "text":
                return _styled(self._plain(element.text), element.text_style)
            case "link":
                words = self._link(element.url, element.text)
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
            case "date":
                words = self._plain(element.fallback)
            case "color":
                words = self._plain(element.value)
        self.unknown |= not words
        return words

    def _reference(self, sign: str, target: str, pattern: re.Pattern[str]) -> str:
        if pattern.fullmatch(target) is None:
            return ""
        label = self._labels.get(sign + target)
        return f"<{sign}{target}|{label}>" if label else f"<{sign}{target}>"

    def _link(self, url: str, label: str) -> str:
        if not url or any(character in url for character in "<>|\n"):
            return ""
        words = self._plain(" ".join(label.split()))
        return f"<{url.translate(_ESCAPES)}|{words}>" if words else f"<{url.translate(_ESCAPES)}>"


def _lines(texts: Iterable[str], *, between: str = "\n") -> str:
    return between.join(filter(None, texts))


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
    ticks = longer_run(words, "`", at_least=1)
    return f"{ticks} {words} {ticks}" if "`" in words else f"`{words}`"


def _bordered(part: BlockPart, text: str) -> str:
    """Slack draws a border around a list or code within a quotation."""
    return _quoted(text) if part.border == 1 else text


def _quoted(text: str) -> str:
    return "\n".join(f"&gt; {line}".rstrip() for line in text.strip("\n").split("\n"))
