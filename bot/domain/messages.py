"""What people write and attach in Slack: its markup as the text that a person reads, files, forwarded messages. Pure.

Source: docs.slack.dev, "Formatting message text" (references in angle brackets, and the three escaped characters), and
what its clients send: they link whatever looks like a URL (`README.md` ends like a domain), with the typed text as the
label. An event only has a reference to a file, which is read later.
"""

import codecs
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from bot.runtime.text import displayable, without_last_word, without_misleading

# Marked mentions: people, channels and user groups that a recorded text mentions by their Slack id. Slack sends a
# mention without a name, and the name is looked up only after the text was recorded. Until then, the mention is
# enclosed in two control characters, which are removed from everything that people type, so text that merely looks
# like an id is never replaced. In a text that was sent, mentions keep the names that they were sent with, so that the
# same text is sent again and still compares equal to the original.

_OPEN, _CLOSE = "\x02", "\x03"
_MENTION = re.compile(f"{_OPEN}[@#]([CDGSUW][A-Z0-9]{{1,30}})(?:\\|([^{_OPEN}{_CLOSE}]*+))?{_CLOSE}")
PRIVATE_CHANNEL, DIRECT_MESSAGE, USER_GROUP = "a private channel", "a direct message", "a user group"
"""Placeholders for names that are private or that Slack does not give. No channel or group can have such a name."""
_IN_WORDS = frozenset({PRIVATE_CHANNEL, DIRECT_MESSAGE, USER_GROUP})


def mention(slack_id: str, name: str = "") -> str:
    """Returns a marked mention."""
    return f"{_OPEN}{_sign(slack_id)}{slack_id}{f'|{name}' if name else ''}{_CLOSE}"


def mentioned(text: str) -> tuple[str, ...]:
    """Returns the ids of all mentions without a name in a recorded text, each once."""
    return tuple(dict.fromkeys(slack_id for slack_id, name in _MENTION.findall(text) if not name))


def is_person(slack_id: str) -> bool:
    """Returns whether an id is a person's, not a channel's or user group's."""
    return slack_id[:1] in {"U", "W"}


def keeping_names(text: str, names: Mapping[str, str]) -> str:
    """Returns the recorded text with names stored in its mentions: from `names` by id, or else the id."""
    return _MENTION.sub(lambda match: mention(match[1], match[2] or names.get(match[1]) or match[1]), text)


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Returns the text as people read it: mentions become their stored name, or `names` by id, or else the id."""
    if _OPEN not in text and _CLOSE not in text:
        return text
    named = _MENTION.sub(lambda match: _shown(match[1], match[2] or names.get(match[1]) or match[1]), text)
    return named.replace(_OPEN, "").replace(_CLOSE, "")


def same_words(text: str, other: str) -> bool:
    """Returns whether two recorded texts are equal, ignoring stored names."""
    return _without_names(text) == _without_names(other)


def beginning(text: str, length: int) -> str:
    """Returns the beginning of a recorded text, up to `length` characters, without cutting a mention in two."""
    head = text[:length]
    opened = head.rfind(_OPEN)
    return head[:opened] if opened > head.rfind(_CLOSE) else head


def _without_names(text: str) -> str:
    return _MENTION.sub(lambda match: mention(match[1]), text)


def _shown(slack_id: str, name: str) -> str:
    return name if name in _IN_WORDS and not is_person(slack_id) else f"{_sign(slack_id)}{name}"


def _sign(slack_id: str) -> str:
    return "#" if slack_id[:1] in {"C", "D", "G"} else "@"


_REFERENCE = re.compile(r"<([^<>|\n]++)(?:\|([^<>\n]*+))?>")
"""Possessive, so that a text of any length is read in one pass."""
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "\u200b\u2060\ufeff"
"""White space, and invisible characters that copied text contains."""
_PHONE_PUNCTUATION = re.compile(r"[\s().\-/]")


def unescape_keeping_mentions(text: str) -> str:
    """Returns the text for recording, as people see it, without hidden characters. Mentions without a name are marked,
    to be named later.
    """
    words = _REFERENCE.sub(_referred, without_misleading(_UNPRINTABLE.sub("", text)))
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        words = words.replace(entity, character)
    return words.strip(BLANKS)


def unescape(text: str) -> str:
    """Returns the text for reading now, with ids for mentions without a name."""
    return with_names(unescape_keeping_mentions(text), {})


def _referred(reference: re.Match[str]) -> str:
    """Returns the text of a reference. Anything that is not Slack's stays unchanged."""
    for pattern, read in RULES:
        target = pattern.fullmatch(reference[1])
        if target is not None:
            return read(target, reference[2] or "")
    return reference[0]


def _mentioned(sign: str) -> Callable[[re.Match[str], str], str]:
    return lambda target, label: f"{sign}{label.removeprefix(sign)}" if label else mention(target[1])


def _named(sign: str) -> Callable[[re.Match[str], str], str]:
    return lambda target, label: f"{sign}{label.removeprefix(sign) or target[1]}"


def _web(target: re.Match[str], label: str) -> str:
    typed = label in {target[0], target[1], target[1].removesuffix("/")}
    host_alone = "/" not in label and label.lower() == target[1].removesuffix("/").lower()
    return label if label and (typed or host_alone) else _labelled(target[0], label)


def _phone(target: re.Match[str], label: str) -> str:
    same = _PHONE_PUNCTUATION.sub("", label) == _PHONE_PUNCTUATION.sub("", target[1])
    return label if label and same else _labelled(target[1], label)


def _labelled(address: str, label: str) -> str:
    return f"{label} ({address})" if label and label != address else address


RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], str], str]], ...] = (
    (re.compile(r"@([UW][A-Z0-9]{1,30})"), _mentioned("@")),
    (re.compile(r"#([CDG][A-Z0-9]{1,30})"), _mentioned("#")),
    (re.compile(r"!subteam\^(S[A-Z0-9]{1,30})"), _mentioned("@")),
    (re.compile(r"!date\^([0-9]*)(?:\^.*)?"), lambda target, label: label or target[1]),
    (re.compile(r"!([a-z_]{1,30})"), _named("@")),
    (re.compile(r"https?://(.*)"), _web),
    (re.compile(r"mailto:(.*)"), lambda target, label: _labelled(label if label == target[0] else target[1], label)),
    (re.compile(r"tel:(.*)"), _phone),
    (re.compile(r"[a-z][a-z0-9+.\-]{1,30}:.*"), lambda target, label: _labelled(target[0], label)),
)
"""What matches the target of `<target|label>` completely, and how that is read; the label can be empty. The first match
applies: people, channels, user groups, dates, @here and the like, links."""


MOST_FILES, MOST_FORWARDED = 20, 10
"""How many of each are kept per message."""
MOST_CHARACTERS = 20_000
"""Characters of a forwarded message; the rest is cut off."""
_NEVER_TEXT = ("application/pdf", "application/vnd.", "application/zip", "audio/", "font/", "image/", "video/")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # starts like UTF-16's
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
"""Control characters, except white space and ESC, which starts colours in the output of commands."""
_TEXT_ALL_THE_SAME = frozenset({"image/svg+xml", "video/mp2t"})
"""Slack reports TypeScript files as the second, because of their extension."""


@dataclass(frozen=True)
class SlackFile:
    """A file in Slack. `size` is in bytes, 0 if unknown. `url` is for reading it with our token, `permalink` for
    people; each can be empty. `elsewhere`: it is not stored at Slack, which only has a link. `must_look_up`: the event
    has only the id, and the rest must be requested.
    """

    id: str
    name: str
    mimetype: str = ""
    size: int = 0
    url: str = ""
    permalink: str = ""
    elsewhere: bool = False
    must_look_up: bool = False

    @property
    def may_be_text(self) -> bool:
        """Whether it may be text, so that its bytes are worth reading."""
        is_text = self.mimetype in _TEXT_ALL_THE_SAME or not self.mimetype.startswith(_NEVER_TEXT)
        return is_text and not self.elsewhere


@dataclass(frozen=True)
class ForwardedMessage:
    """A message that another person forwarded, or linked to. `author` is a name or a marked mention, and `text` can
    contain marked mentions (bot.domain.messages). Every field can be empty.
    """

    author: str
    text: str
    url: str = ""
    files: tuple[SlackFile, ...] = ()


@dataclass(frozen=True)
class FileContent:
    """A file's bytes, or only the beginning if not `complete`."""

    data: bytes
    mimetype: str
    complete: bool = True


class FileProblem(StrEnum):
    """Why the agent does not get a file."""

    REFUSED = "refused"
    """Slack refuses it: it was deleted, or Pagehand may not read it."""
    ELSEWHERE = "elsewhere"
    """It is not stored at Slack."""
    TOO_LARGE = "too_large"
    NOT_TAKEN = "not_taken"
    """The project's job API does not accept it."""
    UNANSWERED = "unanswered"
    """Slack failed to deliver it for minutes."""


@dataclass(frozen=True)
class QuotedFile:
    """A file in the context. `text` is its content, or only the beginning if not `complete`; None if it is not text, or
    there is a `problem`. `sent_along`: the agent gets the file itself.
    """

    file: SlackFile
    text: str | None = None
    complete: bool = True
    sent_along: bool = False
    problem: FileProblem | None = None


def quoted(file: SlackFile, content: FileContent) -> QuotedFile:
    """Returns the file with its text, if its bytes are readable text. The last word of an incomplete text is left out,
    because a secret that is cut in two would not be recognized.
    """
    text = decoded(content.data, complete=content.complete)
    if text is None:
        return QuotedFile(file)
    shown = displayable(text)
    return QuotedFile(file, shown if content.complete else without_last_word(shown), complete=content.complete)


def decoded(data: bytes, *, complete: bool = True) -> str | None:
    """Decodes text by its byte order mark, or else as UTF-8 or Latin-1; None if the result contains characters that no
    text has.
    """
    marked = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), None)
    for encoding in (marked,) if marked else ("utf-8", "cp1252", "latin-1"):
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            text = decoder.decode(data, final=complete)
        except UnicodeDecodeError:
            continue
        return None if _NO_TEXT.search(text) else text.removeprefix("\ufeff")
    return None


@dataclass(frozen=True)
class LinkPreview:
    """What Slack or an app shows below a message, such as a preview of a linked page. Every field can be empty."""

    title: str
    text: str
    url: str = ""


@dataclass(frozen=True)
class ThreadMessage:
    """A message of a thread. `author` is a name or a marked mention, and the texts can contain marked mentions
    (bot.domain.messages).
    """

    author: str
    text: str
    ts: str
    files: tuple[SlackFile, ...] = ()
    forwarded: tuple[ForwardedMessage, ...] = ()
    previews: tuple[LinkPreview, ...] = ()


def people_in(messages: Sequence[ThreadMessage], forwarded: Sequence[ForwardedMessage] = ()) -> tuple[str, ...]:
    """Returns the ids of the messages' authors and of everybody they mention, each once."""
    inside = [share for message in messages for share in message.forwarded]
    texts = [text for message in messages for text in (message.author, message.text)]
    texts += [text for share in (*inside, *forwarded) for text in (share.author, share.text)]
    texts += [preview.text for message in messages for preview in message.previews]
    return tuple(dict.fromkeys(user_id for text in texts for user_id in mentioned(text)))


def with_known_names(message: ThreadMessage, names: Mapping[str, str]) -> ThreadMessage:
    """Returns the message with mentions replaced by `names` (by id), or else by the id."""
    return replace(
        message,
        author=_person(message.author, names),
        text=with_names(message.text, names),
        forwarded=tuple(forwarded_with_names(share, names) for share in message.forwarded),
        previews=tuple(replace(preview, text=with_names(preview.text, names)) for preview in message.previews),
    )


def forwarded_with_names(share: ForwardedMessage, names: Mapping[str, str]) -> ForwardedMessage:
    """Returns the forwarded message with mentions replaced by names."""
    return replace(share, author=_person(share.author, names), text=with_names(share.text, names))


def _person(author: str, names: Mapping[str, str]) -> str:
    return with_names(author, names).removeprefix("@") if mentioned(author) else author
