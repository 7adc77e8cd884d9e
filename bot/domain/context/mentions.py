"""People, channels and user groups that a recorded text mentions by their Slack id, told apart from all that somebody
typed.

Slack sends a mention without a name, and the name is looked up only after the text was recorded. Till then the mention
stands between two control characters, which are taken out of all that people type: so nothing that merely looks like an
id is ever replaced, and a text recorded without them reads as it is. In a text that was sent, mentions keep the names
that they were sent with: so the same words are sent again, and they still compare as those that were written.
"""

import re
from collections.abc import Mapping

_OPEN, _CLOSE = "\x02", "\x03"
_MENTION = re.compile(f"{_OPEN}[@#]([CDGSUW][A-Z0-9]{{1,30}})(?:\\|([^{_OPEN}{_CLOSE}]*+))?{_CLOSE}")
_CHANNELS = frozenset("CDG")
PRIVATE_CHANNEL, DIRECT_MESSAGE, USER_GROUP = "a private channel", "a direct message", "a user group"
"""What stands in the place of names that are not for everybody, or that Slack does not tell. No channel and no group
can have such a name.
"""
_IN_WORDS = frozenset({PRIVATE_CHANNEL, DIRECT_MESSAGE, USER_GROUP})


def mention(slack_id: str, name: str = "") -> str:
    """A mention as it is recorded."""
    return f"{_OPEN}{_sign(slack_id)}{slack_id}{f'|{name}' if name else ''}{_CLOSE}"


def mentioned(text: str) -> tuple[str, ...]:
    """The ids of whom and what a recorded text mentions and does not name, each once."""
    return tuple(dict.fromkeys(slack_id for slack_id, name in _MENTION.findall(text) if not name))


def is_person(slack_id: str) -> bool:
    """Whether it is a person's id, and no channel's or user group's."""
    return slack_id[:1] in {"U", "W"}


def keeping_names(text: str, names: Mapping[str, str]) -> str:
    """The recorded text with the names that it is read with from now on: `names` by id; where there is none, the id."""
    return _MENTION.sub(lambda match: mention(match[1], match[2] or names.get(match[1]) or match[1]), text)


def with_names(text: str, names: Mapping[str, str]) -> str:
    """The text as people read it: with the names that it keeps, else `names` by id; where there is none, the id."""
    if _OPEN not in text and _CLOSE not in text:
        return text
    named = _MENTION.sub(lambda match: _shown(match[1], match[2] or names.get(match[1]) or match[1]), text)
    return named.replace(_OPEN, "").replace(_CLOSE, "")


def same_words(text: str, other: str) -> bool:
    """Whether two recorded texts say the same, whatever names they keep."""
    return _without_names(text) == _without_names(other)


def beginning(text: str, length: int) -> str:
    """The beginning of a recorded text, at most so long, with no mention cut in two."""
    head = text[:length]
    opened = head.rfind(_OPEN)
    return head[:opened] if opened > head.rfind(_CLOSE) else head


def _without_names(text: str) -> str:
    return _MENTION.sub(lambda match: mention(match[1]), text)


def _shown(slack_id: str, name: str) -> str:
    return name if name in _IN_WORDS and not is_person(slack_id) else f"{_sign(slack_id)}{name}"


def _sign(slack_id: str) -> str:
    return "#" if slack_id[:1] in _CHANNELS else "@"
