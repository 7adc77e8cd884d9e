"""Text as Slack stores it: escaped, with mentions, channels and links in angle brackets."""

import re
from collections.abc import Callable

from bot.workspace.model.entities import SlackError

TEXT_LIMIT = 40_000
_CONTROL = re.compile(r"<((?:[@#!][^<>\n]+)|(?:(?:https?|mailto|tel|slack)[^<>\n]*))>")
_BARE_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt);)")
_ESCAPED_URL = r"https?://(?:&amp;|[^\s<>|&])*(?:&amp;|[^\s<>|&.,;:!?'\")\]`*~])"
_URL = re.compile(_ESCAPED_URL)
_TYPED = re.compile(
    rf"(?P<url>{_ESCAPED_URL})"
    r"|(?<![\w@])@(?P<person>[a-zA-Z0-9][a-zA-Z0-9._-]*)"
    r"|(?<![\w#&])#(?P<channel>[a-zA-Z0-9][a-zA-Z0-9_-]*)"
)
_EMOJI_NAME = re.compile(r"[a-z0-9_+'\-]{1,100}(?:::skin-tone-[2-6])?")
_BROADCASTS = frozenset({"here", "channel", "everyone"})

FindId = Callable[[str], str | None]
"""Returns the id of the user or channel with that name, or None."""


def escape(text: str) -> str:
    """Escapes the three special characters of Slack's text format."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unescape(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def stored_app_text(text: str) -> str:
    """Returns an app's text as Slack stores it: control sequences stay, everything else is escaped once."""
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


def stored_typed_text(text: str, user_id: FindId, channel_id: FindId, group_id: FindId = lambda _: None) -> str:
    """Returns typed text as Slack stores it: ``@name``, ``#channel`` and URLs become references, however
    names are capitalized.

    Args:
        text: The typed text.
        user_id: Finds a user by name.
        channel_id: Finds a channel by name.
        group_id: Finds a user group by handle.
    """

    def reference(match: re.Match[str]) -> str:
        if match["url"]:
            return f"<{match['url']}>"
        if match["person"]:
            return _user_reference(match["person"].lower(), user_id, group_id) or match.group(0)
        name = match["channel"].lower()
        found = channel_id(name)
        return f"<#{found}|{name}>" if found else match.group(0)

    return _TYPED.sub(reference, escape(text))


def _user_reference(name: str, user_id: FindId, group_id: FindId) -> str | None:
    """Returns the reference for a name, which may include the full stop at the end of a sentence."""
    if name in _BROADCASTS:
        return f"<!{name}>"
    for bare in dict.fromkeys((name, name.rstrip("._-"))):
        if found := user_id(bare):
            return f"<@{found}>{name[len(bare) :]}"
        if found := group_id(bare):
            return f"<!subteam^{found}>{name[len(bare) :]}"
    return None


def emoji_name(text: str) -> str:
    """Returns a reaction's name without its colons. Does not check that such an emoji exists.

    Raises:
        SlackError: ``invalid_name``.
    """
    name = text.strip(":")
    if not _EMOJI_NAME.fullmatch(name):
        raise SlackError("invalid_name")
    return name
