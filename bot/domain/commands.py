"""What people type, turned into commands: the text after the slash command, and the replies in a job's thread."""

import re
from dataclasses import dataclass
from enum import StrEnum

from bot.domain.message_text import unescape_keeping_mentions

ASIDE_PREFIX = "//"
"""A reply that begins with this is between people: it is not sent to the job."""

_DASHES = str.maketrans({"\u2014": "--", "\u2013": "--"})
"""What computers make of two hyphens while people type."""
_HELP_WORDS = frozenset({"", "help", "-h", "--help", "?"})
_QUOTES = frozenset({'""', "''", "``", "\u201c\u201d", "\u201e\u201c", "\u2018\u2019", "\u00ab\u00bb"})


class LoneWord(StrEnum):
    """A word that, alone, is more likely to be meant for Pagehand than for the agent."""

    STATUS = "status"
    LIST = "list"
    CANCEL = "cancel"
    STOP = "stop"


_LONE_WORDS = frozenset(LoneWord)


class ThreadWord(StrEnum):
    """What is meant for Pagehand itself, written by itself in a job's thread, with `!` before it."""

    STATUS = "status"
    MUTE = "mute"
    UNMUTE = "unmute"
    STOP = "stop"
    RETRY = "retry"
    NEW = "new"
    """Another job, with the prompt that follows."""
    HELP = "help"


@dataclass(frozen=True)
class Help:
    """The person wants to know how it works; `meant` is the word that was tried as a command of its own."""

    meant: LoneWord | None = None


@dataclass(frozen=True)
class Start:
    """The person wants a job."""

    prompt: str


@dataclass(frozen=True)
class Aside:
    """A reply between people."""


@dataclass(frozen=True)
class NoWords:
    """A reply with no words of its own: a lone mention, a file without a comment."""


@dataclass(frozen=True)
class FollowUp:
    """The person steers the job."""

    prompt: str


def parse_slash(text: str) -> Help | Start:
    """Reads what follows the slash command, in Slack's escaped form. A word kept for the help is a prompt in quotes."""
    prompt = unescape_keeping_mentions(text)
    word = prompt.translate(_DASHES).lower()
    if word in _HELP_WORDS:
        return Help()
    if word in _LONE_WORDS:
        return Help(LoneWord(word))
    return Start(_insisted_on(prompt) or prompt)


def _insisted_on(prompt: str) -> str:
    """The word in quotes, where without them it would get the help; else empty."""
    inner = prompt[1:-1] if prompt[:1] + prompt[-1:] in _QUOTES else ""
    return inner if inner.translate(_DASHES).lower() in _HELP_WORDS | _LONE_WORDS else ""


def parse_reply(text: str, *, bot_user_id: str) -> Aside | NoWords | FollowUp:
    """Reads a reply, in Slack's escaped form. Mentions of the bot address it and are not part of what it is told."""
    prompt = unescape_keeping_mentions(_without_mention(text, bot_user_id))
    if not prompt:
        return NoWords()
    return Aside() if prompt.startswith(ASIDE_PREFIX) else FollowUp(prompt)


def _without_mention(text: str, user_id: str) -> str:
    """The text without mentions of somebody, and without the blanks and the comma or colon that belonged to them."""
    mention = rf"<@{re.escape(user_id)}(?:\|[^<>\n]*+)?>"
    opening = re.compile(rf"^(?:{mention}(?:[,:](?=\s|$))?[ \t]*+)++", re.MULTILINE)
    return re.sub(rf"(?:(?<![ \t])[ \t]++)?{mention}", "", opening.sub("", text))
