"""Parses the options before a prompt: `project:NAME` and `quiet`, in any order.

A name is one word, which may be in quotation marks. Several words in quotation marks count as an unknown project.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from bot.domain.commands.signs import latin
from bot.domain.context.message_text import BLANKS, with_names

MAX_PROJECT_NAME = 200
"""Characters of a project's name that are kept."""
_OPTION = re.compile(
    r"(?:--|\u2014|\u2013)(?i:(?P<flag>quiet)(?=\s|\Z)|project(?:[:=]|\s++|\Z))|(?P<word>quiet)(?=\s|\Z)|(?i:project)[:=]"
)
"""Dashes in front are accepted, as in a terminal. `Quiet` without dashes may be the beginning of a sentence."""
_CLOSING = {
    '"': '"\u201d',
    "'": "'\u2019",
    "`": "`",
    "\u201c": '\u201d\u201c"',
    "\u201d": "\u201d",
    "\u201e": "\u201c\u201d",
    "\u2018": "\u2019",
    "\u00ab": "\u00bb",
    "\u300c": "\u300d",
}
"""The closing mark of each opening quotation mark, since software replaces the straight ones while people type."""


class OptionName(StrEnum):
    """An option before a prompt."""

    PROJECT = "project"
    QUIET = "quiet"


class OptionFault(StrEnum):
    """What is wrong with an option."""

    TWICE = "twice"
    EMPTY = "empty"
    UNCLOSED = "unclosed"
    """Its value starts with a quotation mark but does not end with one."""


@dataclass(frozen=True)
class Options:
    """The options: the project as typed (empty: none), and whether the end mentions nobody."""

    project: str = ""
    quiet: bool = False


NO_OPTIONS = Options()


@dataclass(frozen=True)
class WrongOption:
    """A malformed option, so that nothing is started."""

    name: OptionName
    fault: OptionFault


def split_options(words: str) -> tuple[Options, str] | WrongOption:
    """Returns the options in front of a prompt, and the prompt."""
    said: dict[OptionName, str] = {}
    words = words.strip(BLANKS)
    rest = latin(words)
    while (match := _OPTION.match(rest)) is not None:
        name = OptionName.QUIET if match["flag"] or match["word"] else OptionName.PROJECT
        if name in said:
            return WrongOption(name, OptionFault.TWICE)
        value = (name, rest[match.end() :]) if name is OptionName.QUIET else _value(rest[match.end() :])
        if isinstance(value, OptionFault):
            return WrongOption(name, value)
        said[name], rest = value[0], value[1].lstrip(BLANKS)
    project = with_names(said.get(OptionName.PROJECT, ""), {})[:MAX_PROJECT_NAME]
    return Options(project, quiet=OptionName.QUIET in said), words[len(words) - len(rest) :]


def _value(text: str) -> tuple[str, str] | OptionFault:
    """Returns an option's value and what follows it."""
    closing = _CLOSING.get(text[:1])
    if closing is None:
        value = text[: next((at for at, character in enumerate(text) if character in BLANKS), len(text))]
        return (value, text[len(value) :]) if value else OptionFault.EMPTY
    end = next((at for at, character in enumerate(text) if at and character in closing), 0)
    if not end:
        return OptionFault.UNCLOSED
    return (text[1:end].strip(BLANKS), text[end + 1 :]) if text[1:end].strip(BLANKS) else OptionFault.EMPTY
