"""Parses what people type into commands: the text after the slash command, and replies in a job's thread."""

import re
from dataclasses import dataclass
from enum import StrEnum

from bot.domain.commands.options import NO_OPTIONS, Options, WrongOption, split_options
from bot.domain.commands.signs import latin
from bot.domain.commands.thanks import is_only_emoji, is_only_thanks
from bot.domain.commands.thread_words import ThreadWord, UnclearWord, Word, word_in
from bot.domain.context.message_text import unescape_keeping_mentions
from bot.runtime.text import without_misleading

ASIDE_PREFIX = "//"
"""A reply that begins with this is between people: it is not sent to the job."""

_DASHES = str.maketrans({"\u2014": "--", "\u2013": "--"})
"""What autocorrection turns two hyphens into."""
_HELP_WORDS = frozenset({"", "help", "-h", "--help", "?"})
_TO_SOMEBODY = re.compile(r"[\s\x00-\x1f\x7f-\x9f]*+<(?:@[UW][A-Z0-9]|!subteam\^|!(?:here|channel|everyone)[|>])")
"""The beginning of a message to a person, a user group, or everybody. Invisible characters may precede it."""
_QUOTES = frozenset({'""', "''", "``", "\u201c\u201d", "\u201e\u201c", "\u2018\u2019", "\u00ab\u00bb", "\u300c\u300d"})


class LoneWord(StrEnum):
    """A word that, alone, is probably meant for Pagehand rather than for the agent."""

    STATUS = "status"
    LIST = "list"
    CANCEL = "cancel"
    STOP = "stop"


_LONE_WORDS = frozenset(LoneWord)


@dataclass(frozen=True)
class Help:
    """The person asks for help; `meant` is the word that they tried as a command."""

    meant: LoneWord | None = None


@dataclass(frozen=True)
class Blank:
    """The person asks for a job, but gives no task."""

    options: Options = NO_OPTIONS


@dataclass(frozen=True)
class Start:
    """The person wants a job."""

    prompt: str
    options: Options = NO_OPTIONS


@dataclass(frozen=True)
class Aside:
    """A message between people."""


@dataclass(frozen=True)
class Thanks:
    """Thanks, and nothing else."""


@dataclass(frozen=True)
class OnlyEmoji:
    """Only emoji: between people, unless the agent has asked something."""

    words: str


@dataclass(frozen=True)
class NoWords:
    """A message without text: a lone mention, a file without a comment."""


@dataclass(frozen=True)
class FollowUp:
    """The person steers the job."""

    prompt: str


def parse_slash(text: str) -> Help | Blank | Start | WrongOption:
    """Parses the text after the slash command, in Slack's escaped form."""
    return parse_prompt(unescape_keeping_mentions(text))


def parse_prompt(words: str) -> Help | Blank | Start | WrongOption:
    """Parses options and prompt. A word that would show the help can be used as a prompt in quotation marks."""
    split = split_options(words)
    if isinstance(split, WrongOption):
        return split
    options, prompt = split
    word = _as_word(prompt)
    if not prompt:
        return Blank(options)
    if word in _HELP_WORDS:
        return Help()
    if word in _LONE_WORDS:
        return Help(LoneWord(word))
    return Start(_insisted_on(prompt) or prompt, options)


def parse_request(
    text: str, *, bot_user_id: str, has_attachments: bool = False
) -> Aside | Thanks | Word | UnclearWord | Help | Blank | Start | WrongOption:
    """Parses a message that asks for a job, in Slack's escaped form: a mention outside of a thread, or a direct
    message. `has_attachments`: see `parse_reply`.
    """
    words = unescape_keeping_mentions(_without_mention(text, bot_user_id))
    if _is_aside(words) or (is_only_emoji(words) and not has_attachments):
        return Aside()
    if is_only_thanks(words) and not has_attachments:
        return Thanks()
    word = word_in(words, addressed=True)
    if isinstance(word, UnclearWord):
        return word
    if word is None or (word.word is ThreadWord.NEW and words[:1].isalpha()):
        return parse_prompt(words)
    if word.word is ThreadWord.HELP:
        return Help()
    return parse_prompt(word.prompt) if word.word is ThreadWord.NEW else word


def says_new(text: str, bot_user_id: str) -> bool:
    """Returns whether a message, in Slack's escaped form, asks for a job with `!new`."""
    words = unescape_keeping_mentions(_without_mention(text, bot_user_id))
    word = word_in(words, addressed=True)
    return isinstance(word, Word) and word.word is ThreadWord.NEW and not words[:1].isalpha()


def parse_reply(
    text: str, *, bot_user_id: str, among_people: bool = True, has_attachments: bool = False
) -> Aside | OnlyEmoji | NoWords | Word | UnclearWord | FollowUp:
    """Parses a message in a thread, in Slack's escaped form. Mentions of the bot are removed from the text.

    Args:
        text: The message.
        bot_user_id: The bot's user id.
        among_people: Whether other people read the thread, so that the message can be for one of them.
        has_attachments: Whether the message contains more than text, so that emoji alone are not all of it.
    """
    text = without_misleading(text)
    addressed = mentions(text, bot_user_id)
    words = unescape_keeping_mentions(_without_mention(text, bot_user_id))
    if not words:
        return NoWords()
    if _is_aside(words):
        return Aside()
    if is_only_emoji(words) and not has_attachments:
        return OnlyEmoji(words)
    if among_people and not addressed and _TO_SOMEBODY.match(text):
        return Aside()
    return word_in(words, addressed=addressed) or FollowUp(words)


def mentions(text: str, user_id: str) -> bool:
    """Returns whether a text in Slack's escaped form mentions somebody."""
    return re.search(rf"<@{re.escape(user_id)}(?:\|[^<>\n]*+)?>", text) is not None


def _insisted_on(prompt: str) -> str:
    """Returns a quoted word that would show the help without quotation marks; otherwise empty."""
    inner = prompt[1:-1] if latin(prompt[:1] + prompt[-1:]) in _QUOTES else ""
    return inner if _as_word(inner) in _HELP_WORDS | _LONE_WORDS else ""


def _as_word(text: str) -> str:
    return latin(text).translate(_DASHES).lower()


def _is_aside(words: str) -> bool:
    return latin(words[: len(ASIDE_PREFIX)]) == ASIDE_PREFIX


def _without_mention(text: str, user_id: str) -> str:
    """Returns the text without mentions of somebody, and the white space, comma or colon after them."""
    mention = rf"<@{re.escape(user_id)}(?:\|[^<>\n]*+)?>"
    opening = re.compile(rf"^(?:{mention}(?:[,:](?=\s|$)|[\uff0c\uff1a\u3001])?[^\S\n]*+)++", re.MULTILINE)
    return re.sub(rf"(?:(?<![ \t])[ \t]++)?{mention}", "", opening.sub("", text))
