"""Slack's message format, turned into the words that a person reads.

Source: docs.slack.dev, "Formatting message text" (what stands in angle brackets, and the three escaped characters), and
what its clients send: they link by themselves whatever looks like an address (`README.md` has the ending of a country),
with the words that were typed as the label.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from bot.domain.context.mentions import mention, with_names
from bot.runtime.misleading_characters import without_misleading

_REFERENCE = re.compile(r"<([^<>|\n]++)(?:\|([^<>\n]*+))?>")
"""Possessive, so that a text of any length is read in one pass."""
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "\u200b\u2060\ufeff"
"""White space, with what takes no room either and comes along in copied text: nobody sees it before a word."""
_PHONE_PUNCTUATION = re.compile(r"[\s().\-/]")


@dataclass(frozen=True)
class Rule:
    """How one kind of `<target|label>` reads; `target` is matched as a whole, and the label can be empty."""

    target: re.Pattern[str]
    read: Callable[[re.Match[str], str], str]


def unescape_keeping_mentions(text: str) -> str:
    """The words for recording, as people see them: nothing hides in them. Whoever and whatever is mentioned without a
    name is marked, to be named later (bot.domain.context.mentions).
    """
    words = _REFERENCE.sub(_referred, without_misleading(_UNPRINTABLE.sub("", text)))
    for entity, character in _ENTITIES:
        words = words.replace(entity, character)
    return words.strip(BLANKS)


def unescape(text: str) -> str:
    """The words for reading at once: what is mentioned without a name keeps its id."""
    return with_names(unescape_keeping_mentions(text), {})


def _referred(reference: re.Match[str]) -> str:
    """What a reference reads as; what is none of Slack's stays as it is."""
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
    Rule(re.compile(r"@([UW][A-Z0-9]{1,30})"), _mentioned("@")),
    Rule(re.compile(r"#([CDG][A-Z0-9]{1,30})"), _mentioned("#")),
    Rule(re.compile(r"!subteam\^(S[A-Z0-9]{1,30})"), _mentioned("@")),
    Rule(re.compile(r"!date\^([0-9]*)(?:\^.*)?"), _date),
    Rule(re.compile(r"!([a-z_]{1,30})"), _named("@")),
    Rule(re.compile(r"https?://(.*)"), _web),
    Rule(re.compile(r"mailto:(.*)"), _mail),
    Rule(re.compile(r"tel:(.*)"), _phone),
    Rule(re.compile(r"[a-z][a-z0-9+.\-]{1,30}:.*"), _other_address),
)
"""The first that matches counts: people, channels, user groups, dates, @here and its kind, links."""
