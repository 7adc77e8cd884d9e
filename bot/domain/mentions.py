"""People whom a recorded text mentions by their Slack id, told apart from all that somebody typed.

Slack sends a mention without a name, and the name is looked up only after the text was recorded. Till then the mention
stands between two control characters, which are taken out of all that people type: so nothing that merely looks like an
id is ever replaced, and a text recorded without them reads as it is. In a text that was sent, mentions keep the names
that they were sent with: so the same words are sent again, and they still compare as those that were written.
"""

import re
from collections.abc import Mapping

_OPEN, _CLOSE = "\x02", "\x03"
_MENTION = re.compile(f"{_OPEN}@([UW][A-Z0-9]{{1,30}})(?:\\|([^{_OPEN}{_CLOSE}]*+))?{_CLOSE}")


def mention(user_id: str, name: str = "") -> str:
    """A mention as it is recorded."""
    return f"{_OPEN}@{user_id}|{name}{_CLOSE}" if name else f"{_OPEN}@{user_id}{_CLOSE}"


def mentioned(text: str) -> tuple[str, ...]:
    """The ids of those whom a recorded text mentions and does not name, each once."""
    return tuple(dict.fromkeys(user_id for user_id, name in _MENTION.findall(text) if not name))


def keeping_names(text: str, names: Mapping[str, str]) -> str:
    """The recorded text with the names that it is read with from now on: `names` by id; where there is none, the id."""
    return _MENTION.sub(lambda match: mention(match[1], match[2] or names.get(match[1]) or match[1]), text)


def with_names(text: str, names: Mapping[str, str]) -> str:
    """The text as people read it: with the names that it keeps, else `names` by id; where there is none, the id."""
    if _OPEN not in text and _CLOSE not in text:
        return text
    named = _MENTION.sub(lambda match: f"@{match[2] or names.get(match[1]) or match[1]}", text)
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
