"""Parses what asks for a job: the text after the slash command, and messages to Pagehand outside of threads."""

from dataclasses import dataclass
from enum import StrEnum

from bot.domain.commands.options import NO_OPTIONS, Options, WrongOption, split_options
from bot.domain.commands.replies import ASIDE_PREFIX, Aside, ThreadWord, UnclearWord, Word, without_mention, word_in
from bot.domain.commands.thanks import is_only_emoji, is_only_thanks
from bot.domain.context.message_text import unescape_keeping_mentions

_DASHES = str.maketrans({"\u2014": "--", "\u2013": "--"})
"""What autocorrection turns two hyphens into."""
_HELP_WORDS = frozenset({"", "help", "-h", "--help", "?"})
_QUOTES = frozenset({'""', "''", "``", "\u201c\u201d", "\u201e\u201c", "\u2018\u2019", "\u00ab\u00bb"})


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
class Thanks:
    """Thanks, and nothing else."""


def parse_slash(text: str) -> Help | Blank | Start | WrongOption:
    """Parses the text after the slash command, in Slack's escaped form."""
    return parse_prompt(unescape_keeping_mentions(text))


def parse_prompt(words: str) -> Help | Blank | Start | WrongOption:
    """Parses options and prompt. A word that would show the help can be used as a prompt in quotation marks."""
    split = split_options(words)
    if isinstance(split, WrongOption):
        return split
    options, prompt = split
    word = prompt.translate(_DASHES).lower()
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
    words = unescape_keeping_mentions(without_mention(text, bot_user_id))
    if words.startswith(ASIDE_PREFIX) or (is_only_emoji(words) and not has_attachments):
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
    words = unescape_keeping_mentions(without_mention(text, bot_user_id))
    word = word_in(words, addressed=True)
    return isinstance(word, Word) and word.word is ThreadWord.NEW and not words[:1].isalpha()


def _insisted_on(prompt: str) -> str:
    """Returns a quoted word that would show the help without quotation marks; otherwise empty."""
    inner = prompt[1:-1] if prompt[:1] + prompt[-1:] in _QUOTES else ""
    return inner if inner.translate(_DASHES).lower() in _HELP_WORDS | _LONE_WORDS else ""
