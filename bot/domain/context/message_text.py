"""Converts Slack's message format into the text that a person reads.

Source: docs.slack.dev, "Formatting message text" (references in angle brackets, and the three escaped characters), and
what its clients send: they link whatever looks like a URL (`README.md` ends like a domain), with the typed text as the
label.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.runtime.text import without_misleading

# Marked mentions: people, channels and user groups that a recorded text mentions by their Slack id. Slack sends a
# mention without a name, and the name is looked up only after the text was recorded. Until then, the mention is
# enclosed in two control characters, which are removed from everything that people type, so text that merely looks
# like an id is never replaced. In a text that was sent, mentions keep the names that they were sent with, so that the
# same text is sent again and still compares equal to the original.

_OPEN, _CLOSE = "\x02", "\x03"
_MENTION = re.compile(f"{_OPEN}[@#]([CDGSUW][A-Z0-9]{{1,30}})(?:\\|([^{_OPEN}{_CLOSE}]*+))?{_CLOSE}")
_CHANNELS = frozenset("CDG")
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
    return "#" if slack_id[:1] in _CHANNELS else "@"


_REFERENCE = re.compile(r"<([^<>|\n]++)(?:\|([^<>\n]*+))?>")
"""Possessive, so that a text of any length is read in one pass."""
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "\u200b\u2060\ufeff"
"""White space, and invisible characters that copied text contains."""
_PHONE_PUNCTUATION = re.compile(r"[\s().\-/]")


@dataclass(frozen=True)
class MarkupRule:
    """How one kind of `<target|label>` is read. `target` must match completely; the label can be empty."""

    target: re.Pattern[str]
    read: Callable[[re.Match[str], str], str]


def unescape_keeping_mentions(text: str) -> str:
    """Returns the text for recording, as people see it, without hidden characters. Mentions without a name are marked,
    to be named later.
    """
    words = _REFERENCE.sub(_referred, without_misleading(_UNPRINTABLE.sub("", text)))
    for entity, character in _ENTITIES:
        words = words.replace(entity, character)
    return words.strip(BLANKS)


def unescape(text: str) -> str:
    """Returns the text for reading now, with ids for mentions without a name."""
    return with_names(unescape_keeping_mentions(text), {})


def _referred(reference: re.Match[str]) -> str:
    """Returns the text of a reference. Anything that is not Slack's stays unchanged."""
    for rule in RULES:
        target = rule.target.fullmatch(reference[1])
        if target is not None:
            return rule.read(target, reference[2] or "")
    return reference[0]


def _mentioned(sign: str) -> Callable[[re.Match[str], str], str]:
    return lambda target, label: f"{sign}{label.removeprefix(sign)}" if label else mention(target[1])


def _named(sign: str) -> Callable[[re.Match[str], str], str]:
    return lambda target, label: f"{sign}{label.removeprefix(sign) or target[1]}"


def _date(target: re.Match[str], label: str) -> str:
    return label or target[1]


def _web(target: re.Match[str], label: str) -> str:
    typed = label in {target[0], target[1], target[1].removesuffix("/")}
    host_alone = "/" not in label and label.lower() == target[1].removesuffix("/").lower()
    return label if label and (typed or host_alone) else _labelled(target[0], label)


def _mail(target: re.Match[str], label: str) -> str:
    return label if label == target[0] else _labelled(target[1], label)


def _phone(target: re.Match[str], label: str) -> str:
    same = _PHONE_PUNCTUATION.sub("", label) == _PHONE_PUNCTUATION.sub("", target[1])
    return label if label and same else _labelled(target[1], label)


def _other_address(target: re.Match[str], label: str) -> str:
    return _labelled(target[0], label)


def _labelled(address: str, label: str) -> str:
    return f"{label} ({address})" if label and label != address else address


RULES = (
    MarkupRule(re.compile(r"@([UW][A-Z0-9]{1,30})"), _mentioned("@")),
    MarkupRule(re.compile(r"#([CDG][A-Z0-9]{1,30})"), _mentioned("#")),
    MarkupRule(re.compile(r"!subteam\^(S[A-Z0-9]{1,30})"), _mentioned("@")),
    MarkupRule(re.compile(r"!date\^([0-9]*)(?:\^.*)?"), _date),
    MarkupRule(re.compile(r"!([a-z_]{1,30})"), _named("@")),
    MarkupRule(re.compile(r"https?://(.*)"), _web),
    MarkupRule(re.compile(r"mailto:(.*)"), _mail),
    MarkupRule(re.compile(r"tel:(.*)"), _phone),
    MarkupRule(re.compile(r"[a-z][a-z0-9+.\-]{1,30}:.*"), _other_address),
)
"""The first match applies: people, channels, user groups, dates, @here and the like, links."""
