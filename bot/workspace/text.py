"""How Slack stores text: escaped, with mentions, channels and links in angle brackets."""

import re
from collections.abc import Callable

TEXT_LIMIT = 40_000
_CONTROL = re.compile(r"<((?:[@#!][^<>\n]+)|(?:(?:https?|mailto|tel|slack)[^<>\n]*))>")
_BARE_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt);)")
_ESCAPED_URL = r"https?://(?:&amp;|[^\s<>|&])*(?:&amp;|[^\s<>|&.,;:!?'\")\]`*~])"
_URL = re.compile(_ESCAPED_URL)
_TYPED = re.compile(
    rf"(?P<url>{_ESCAPED_URL})"
    r"|(?<![\w@])@(?P<person>[a-z0-9][a-z0-9._-]*)"
    r"|(?<![\w#&])#(?P<channel>[a-z0-9][a-z0-9_-]*)"
)
_BROADCASTS = frozenset({"here", "channel", "everyone"})

FindPerson = Callable[[str], str | None]
FindChannel = Callable[[str], str | None]


def escape(text: str) -> str:
    """Escape the three characters that Slack's text format gives a meaning."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unescape(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def stored_app_text(text: str) -> str:
    """Text given by an app, as Slack stores it: its control sequences stay, all else is escaped once."""
    kept: list[str] = []
    position = 0
    for match in _CONTROL.finditer(text):
        kept.append(_escape_once(text[position : match.start()]))
        kept.append(match.group(0))
        position = match.end()
    kept.append(_escape_once(text[position:]))
    return "".join(kept)[:TEXT_LIMIT]


def _escape_once(text: str) -> str:
    escaped = _BARE_AMPERSAND.sub("&amp;", text).replace("<", "&lt;").replace(">", "&gt;")
    return _URL.sub(lambda match: f"<{match.group(0)}>", escaped)


def stored_typed_text(text: str, person: FindPerson, channel: FindChannel) -> str:
    """Text that a person typed, as Slack stores it: ``@name``, ``#channel`` and URLs become references.

    Args:
        text: The characters typed.
        person: The user id of a name, or None.
        channel: The channel id of a name, or None.
    """

    def reference(match: re.Match[str]) -> str:
        if match["url"]:
            return f"<{match['url']}>"
        if match["person"]:
            return _person_reference(match["person"], person) or match.group(0)
        found = channel(match["channel"])
        return f"<#{found}|{match['channel']}>" if found else match.group(0)

    return _TYPED.sub(reference, escape(text))


def _person_reference(name: str, person: FindPerson) -> str | None:
    """A name at a sentence's end may have taken its full stop with it."""
    if name in _BROADCASTS:
        return f"<!{name}>"
    if found := person(name):
        return f"<@{found}>"
    bare = name.rstrip("._-")
    if bare != name and (found := person(bare)):
        return f"<@{found}>{name[len(bare) :]}"
    return None
