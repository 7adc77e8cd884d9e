"""The parts of a context: the thread, what was forwarded, files. Each keeps to what room there is left."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.domain.context.slack_files import ForwardedMessage, QuotedFile, SlackFile
from bot.domain.context.thread_messages import LinkPreview, ThreadMessage

_TILDES = re.compile(r"~++")
_SHORTEST_FENCE = 3
_SOMEBODY = "Somebody"
_REST_LEFT_OUT = "(The rest is left out.)"


@dataclass
class Room:
    """How many characters are left for all that follows, and whether something found no room."""

    left: int
    words_left_out: bool = False

    def take(self, text: str) -> str | None:
        """Returns the text, or its beginning where not all of it fits; None where there is no room left."""
        taken = text[: max(self.left, 0)]
        self.left -= len(text)
        self.words_left_out |= len(taken) < len(text)
        return taken if taken or not text else None


@dataclass(frozen=True)
class WrittenFile:
    """A file whose name, link and text are written as they go out."""

    quote: QuotedFile
    reference: str
    text: str


def thread_section(messages: Sequence[str], *, earlier: bool, room: Room) -> tuple[str, bool]:
    """Returns the messages, oldest first, of which the last have room, and whether there were others before; `earlier`:
    there are others before these.
    """
    told: list[str] = []
    for message in reversed(messages):
        text = room.take(message)
        if text is None:
            break
        told.append(text if text == message else f"{text}\n{_REST_LEFT_OUT}")
    left_out = earlier or len(told) < len(messages)
    heading = [_heading(len(messages) + earlier)] if told else []
    omitted = ["(Earlier messages are left out.)"] if left_out else []
    return "\n\n".join((*heading, *omitted, *reversed(told))), left_out


def _heading(count: int) -> str:
    return "A message from Slack:" if count == 1 else "The thread, oldest message first:"


def forwarded_section(forwarded: Sequence[str], room: Room) -> str:
    """Returns what was forwarded with the request."""
    told = []
    for whole in forwarded:
        text = room.take(whole)
        told.append(_REST_LEFT_OUT if text is None else text if text == whole else f"{text}\n{_REST_LEFT_OUT}")
    return "\n\n".join(("Forwarded with the request:", *told)) if told else ""


def files_section(files: Sequence[WrittenFile], room: Room) -> tuple[str, tuple[str, ...]]:
    """Returns the files, and the names of those that are cut or left out."""
    told, cut = [], []
    for file in files:
        text = None if file.quote.text is None else room.take(file.text)
        whole = file.quote.complete and text == file.text
        told.append(_file(file, text, whole=whole))
        if not whole and file.quote.text is not None:
            cut.append(file.quote.file.name)
    return "\n\n".join(told), tuple(cut)


def written_message(message: ThreadMessage) -> str:
    """Returns a message as it is quoted, with what hangs on it."""
    lines = [*message.text.splitlines(), *(f"Attached: {file_reference(file)}" for file in message.files)]
    for share in message.forwarded:
        lines += _share(share)
    for preview in message.previews:
        lines += _preview(preview)
    return "\n".join((f"{message.author or _SOMEBODY}{_time(message.ts)}:", *_quote(lines)))


def written_share(share: ForwardedMessage) -> str:
    """Returns a forwarded message as it is quoted."""
    return "\n".join(_share(share))


def _share(share: ForwardedMessage) -> list[str]:
    lines = [*share.text.splitlines(), *(f"Attached: {file_reference(file)}" for file in share.files)]
    return [f"A message of {share.author or _SOMEBODY}{_in_brackets(share.url)}:", *_quote(lines)]


def _preview(preview: LinkPreview) -> list[str]:
    title = preview.title or "a link"
    return [f"Preview of {title}{_in_brackets(preview.url)}:", *_quote(preview.text.splitlines())]


def _quote(lines: list[str]) -> list[str]:
    return [f"> {line}".rstrip() for line in lines]


def _file(file: WrittenFile, text: str | None, *, whole: bool) -> str:
    heading, quote = f"Attached file: {file.reference}", file.quote
    if quote.sent_along:
        return f"{heading}. The file itself comes with this request."
    if quote.text is None:
        without = "the link only, not the file itself" if quote.file.permalink else "neither the file itself nor a link"
        return f"{heading}. You get {without}."
    if text is None:
        return f"{heading}. Its text is left out: there is no room for more."
    fence = "~" * max([_SHORTEST_FENCE, *(len(run) + 1 for run in _TILDES.findall(text))])
    return "\n".join((f"{heading}:", fence, text, fence, *([] if whole else [_REST_LEFT_OUT])))


def file_reference(file: SlackFile) -> str:
    """Returns a file's name and link."""
    return f"{file.name or 'a file without a name'}{_in_brackets(file.permalink)}"


def _in_brackets(url: str) -> str:
    return f" ({url})" if url else ""


def _time(ts: str) -> str:
    """Returns when a message was written, in UTC; nothing where its `ts` is no time."""
    try:
        return f", {datetime.fromtimestamp(float(ts), UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, OSError, ValueError):
        return ""
