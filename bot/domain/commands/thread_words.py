"""Recognizes words for Pagehand in a job's thread, and messages that were probably meant as one. Pure."""

import re
from dataclasses import dataclass
from enum import StrEnum

from bot.domain.commands.signs import latin
from bot.domain.context.message_text import BLANKS


class ThreadWord(StrEnum):
    """A word for Pagehand itself, as the whole message in a job's thread, with `!` before it."""

    STATUS = "status"
    MUTE = "mute"
    UNMUTE = "unmute"
    STOP = "stop"
    RETRY = "retry"
    DISCARD = "discard"
    """Discards the work that the agent had done before it failed."""
    NEW = "new"
    """Starts another job with the prompt that follows."""
    HELP = "help"


@dataclass(frozen=True)
class Word:
    """A word for Pagehand; with NEW, also the prompt of another job."""

    word: ThreadWord
    prompt: str = ""


@dataclass(frozen=True)
class UnclearWord:
    """A message that was probably meant as a word for Pagehand: its writer is asked, and the agent does not get it."""

    meant: ThreadWord


_MARK = re.compile(r"[`*_~]{0,3}!{1,2}(?!!)[^\S\n]{0,3}")
"""With which a word for Pagehand begins, also as it comes along when it is copied from a message. Three begin a note in
Markdown.
"""
_NEW = re.compile(r"(new)([:,]?)(?:\s++(.*+))?", re.DOTALL | re.IGNORECASE)
_PUNCTUATION = ".,;:!\u2026`*_~\"'()"
_QUESTION = "?"
_UNMISTAKABLE = {str(word): word for word in ThreadWord if word is not ThreadWord.NEW} | dict.fromkeys(
    ("cancel", "halt", "abort"), ThreadWord.STOP
)
_PROBABLY = _UNMISTAKABLE | {
    "new": ThreadWord.NEW,
    "again": ThreadWord.RETRY,
    "redo": ThreadWord.RETRY,
    "rerun": ThreadWord.RETRY,
    "restart": ThreadWord.RETRY,
    "start": ThreadWord.RETRY,
    "progress": ThreadWord.STATUS,
    "commands": ThreadWord.HELP,
    "quit": ThreadWord.STOP,
}
_FILLERS = frozenset(
    {"asap", "immediately", "it", "job", "me", "my", "now", "please", "pls", "plz", "right", "thanks", "that", "the"}
    | {"this", "agent", "work", "working"}
)
"""Words that do not change the meaning of the one beside them."""
_LONGEST, _MOST_WORDS = 60, 3
"""The maximum characters, and words besides fillers, of a message that can be a word for Pagehand."""
_REPEATED = re.compile(r"(.)\1+")


def word_in(words: str, *, addressed: bool) -> Word | UnclearWord | None:
    """Returns the word for Pagehand that a message is, or was probably meant to be; None if it is for the agent.

    Args:
        words: The message, as people see it.
        addressed: Whether it mentions Pagehand, so that a word counts without `!`.
    """
    mark = _MARK.match(latin(words))
    if mark is None and not addressed:
        return None
    said = words[mark.end() :] if mark else words
    marked = mark is not None
    return _another_job(said, marked=marked) or (_marked_word(said) if marked else _bare_word(said))


def _another_job(said: str, *, marked: bool) -> Word | None:
    found = _NEW.fullmatch(latin(said))
    if found is None or (found[2] and not marked):
        return None
    prompt = said[found.start(3) :].strip(BLANKS) if found[3] else ""
    if prompt and not (marked or found[1].islower()):
        return None  # a sentence can start with `New …`
    return Word(ThreadWord.NEW, prompt) if prompt else Word(ThreadWord.HELP)


def _marked_word(said: str) -> Word | UnclearWord | None:
    spoken = _spoken(said)
    if not spoken or len(spoken) > _MOST_WORDS:
        return None
    if len(spoken) == 1 and (word := _UNMISTAKABLE.get(_REPEATED.sub(r"\1", spoken[0]))):
        return Word(word)
    first = spoken[0].strip(_QUESTION + _PUNCTUATION)
    return next((UnclearWord(meant) for word, meant in _PROBABLY.items() if _is_near(first, word)), None)


def _is_near(said: str, word: str) -> bool:
    """Returns whether it is the word, or one letter was added, left out or mistyped, or two neighbours are swapped."""
    while said and said[0] == word[:1]:
        said, word = said[1:], word[1:]
    return word in {said[1:], f"{said[1:2]}{said[:1]}{said[2:]}"} or word[1:] in {said, said[1:]}


def _bare_word(said: str) -> Word | None:
    """Without `!`, only the exact words count, and a stop together with filler words."""
    spoken = _spoken(said)
    if len(spoken) != 1 or spoken[0] not in set(ThreadWord) or spoken[0] == ThreadWord.NEW:
        return None
    alone = latin(said).strip(BLANKS + _PUNCTUATION).lower() == spoken[0]
    return Word(ThreadWord(spoken[0])) if alone or spoken[0] == ThreadWord.STOP else None


def _spoken(said: str) -> list[str]:
    """Returns the words of a short message, in lower case and without fillers; none of a long message."""
    if len(said) > _LONGEST:
        return []
    spoken = (word.strip(_PUNCTUATION).lower() for word in latin(said).split())
    return [word for word in spoken if word and word not in _FILLERS]
