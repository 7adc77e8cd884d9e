"""What people type, turned into commands: the text after the slash command, and the replies in a job's thread."""

import re
from dataclasses import dataclass

ASIDE = "//"
"""A reply that begins with this is between people: it is not sent to the job."""

_REFERENCE = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True)
class Help:
    """The person wants to know how it works."""


@dataclass(frozen=True)
class Start:
    """The person wants a job."""

    prompt: str


@dataclass(frozen=True)
class Aside:
    """A reply between people."""


@dataclass(frozen=True)
class Nothing:
    """A reply with no words of its own: a lone mention, a file without a comment."""


@dataclass(frozen=True)
class FollowUp:
    """The person steers the job."""

    prompt: str


def parse_slash(text: str) -> Help | Start:
    """Reads what follows the slash command, in Slack's escaped form."""
    prompt = plain(text)
    return Help() if prompt.lower() in {"", "help"} else Start(prompt)


def parse_reply(text: str, *, bot_user_id: str) -> Aside | Nothing | FollowUp:
    """Reads a reply, in Slack's escaped form. Mentions of the bot address it and are not part of what it is told."""
    prompt = plain(re.sub(rf"<@{re.escape(bot_user_id)}(?:\|[^<>]*)?>", "", text))
    if not prompt:
        return Nothing()
    return Aside() if prompt.startswith(ASIDE) else FollowUp(prompt)


def plain(text: str) -> str:
    """Slack's escaped form as the words a person reads: references become names and addresses, entities characters.

    Source: docs.slack.dev, "Formatting message text".
    """
    words = _REFERENCE.sub(lambda match: _reference(match[1], match[2] or ""), text)
    for entity, character in _ENTITIES:
        words = words.replace(entity, character)
    return _UNPRINTABLE.sub("", words).strip()


def _reference(target: str, label: str) -> str:
    match target[0]:
        case "@":
            return f"@{label.removeprefix('@') or target[1:]}"
        case "#":
            return f"#{label.removeprefix('#') or target[1:]}"
        case "!":
            return _special(target[1:], label)
    address = target.removeprefix("mailto:")
    return address if not label or label in address else f"{label} ({address})"


def _special(target: str, label: str) -> str:
    if target.startswith("date^"):
        return label
    return f"@{label.removeprefix('@') or target.partition('^')[2] or target}"
