"""Handles untrusted text: removes misleading characters, shortens text, and processes long texts in a thread.

Misleading characters are invisible but change what is read: they reorder the text around them, or hide text.

Sources: Unicode Technical Report 36 and "Trojan Source" (CVE-2021-42574) for characters that reorder; Unicode's
property Default_Ignorable_Code_Point for characters that are not drawn. Joiners and variation selectors change how the
preceding character is drawn. They are kept, one at a time, only where scripts and emoji use them (UTS 51 for emoji).
"""

import asyncio
import re
from collections.abc import Callable
from typing import TypeVar
from unicodedata import category

MISLEADING = re.compile(
    "[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # reorder
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u200b\u2060-\u2065\u206a-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb"  # hide
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # format shorthand and music
    "\U000e0000-\U000e0fff]"  # tags and variation selectors: a whole text can hide in them
)
_BRAILLE_BLANK, _BLANK = "\u2800", " "
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_UNPRINTABLE = re.compile(rf"{_CONTROL.pattern}|{_SURROGATE.pattern}|[\u2028\u2029]")

_JOINERS = "\u200c\u200d"
_EMOJI_JOINER = "\u200d"
_EMOJI_STYLES = "\ufe0e\ufe0f"
_VARIANTS = "\ufe00\ufe01\ufe02"
_MONGOLIAN_SIGNS = "\u180b\u180c\u180d\u180e\u180f"
_RUN = re.compile(f"[{_JOINERS}\ufe00-\ufe0f{_MONGOLIAN_SIGNS}]+")
_JOINED_SCRIPT = re.compile(
    "[\u0600-\u0dff\u1000-\u109f\u1700-\u18af\u1900-\u1aaf\u1b00-\u1c4f\ua800-\ua82f\ua840-\uabff\ufb50-\ufdff\ufe70-\ufefc"
    "\U00010a00-\U00010fff\U00011000-\U00011fff\U0001e900-\U0001e95f]"
)
"""Arabic, Syriac, Indic, Mongolian and other scripts in which joiners determine how letters are drawn."""
_MONGOLIAN = re.compile("[\u1807\u180a\u1820-\u18aa]")
_WITH_VARIANTS = re.compile("[\u1000-\u109f\ua840-\ua877\uaa60-\uaa7f\u2200-\u22ff\u2a00-\u2aff]")
"""Myanmar, Phags-pa and mathematics, which have standardized variants."""
_KEY, _KEYCAP = re.compile("[0-9#*]"), "\u20e3"
_EMOJI_OF_OTHER_KIND = re.compile("[\u203c\u2049\u2139\u3030\U0001f000-\U0001faff]")
"""Punctuation, a letter, skin tones, and emoji newer than the interpreter's Unicode tables."""
_SYMBOLS = frozenset({"So", "Sm"})


def without_misleading(text: str) -> str:
    """Returns the text as a reader sees it, without misleading characters."""
    visible = MISLEADING.sub(_drawn, text)
    return _RUN.sub(_significant_signs, visible)


def displayable(text: str) -> str:
    """Returns the text without characters that cannot be shown or sent: control characters (except line breaks), lone
    surrogates, and misleading characters.
    """
    if text.isascii() and text.isprintable():
        return text
    lines = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return without_misleading(_SURROGATE.sub("\ufffd", lines))


def _drawn(found: re.Match[str]) -> str:
    return _BLANK if found[0] == _BRAILLE_BLANK else ""


def _significant_signs(run: re.Match[str]) -> str:
    """Returns, from a run of joiners and selectors, those that change how the preceding character is drawn."""
    before, signs, after = run.string[run.start() - 1 : run.start()], run[0], run.string[run.end() : run.end() + 1]
    if not before:
        return ""
    if _is_written_with(before, signs[0]):
        return signs[0]
    if _is_emoji(before):
        style = signs[0] if signs[0] in _EMOJI_STYLES else ""
        joined = signs[len(style) : len(style) + 1] == _EMOJI_JOINER and after and _is_emoji(after)
        return f"{style}{_EMOJI_JOINER}" if joined else style
    if _KEY.match(before):
        return signs[0] if signs[0] in _EMOJI_STYLES and after == _KEYCAP else ""
    return ""


def _is_written_with(letter: str, sign: str) -> bool:
    if sign in _JOINERS:
        return bool(_JOINED_SCRIPT.match(letter))
    if sign in _VARIANTS:
        return bool(_WITH_VARIANTS.match(letter))
    return sign in _MONGOLIAN_SIGNS and bool(_MONGOLIAN.match(letter))


def _is_emoji(character: str) -> bool:
    return bool(_EMOJI_OF_OTHER_KIND.match(character)) or (not character.isascii() and category(character) in _SYMBOLS)


T = TypeVar("T")

LONG = 10_000
"""Characters. Masking secrets in the worst text of this length takes about 40 ms."""


async def in_thread_if_long(characters: int, work: Callable[[], T]) -> T:
    """Runs a pure function on texts of `characters` in total; in a thread if they are long."""
    return await asyncio.to_thread(work) if characters > LONG else work()


_LONGEST_SECRET = 4_000
"""Characters. A text that is not masked yet must be cut so that no part of a secret remains at the end."""


def whole_words(text: str, length: int) -> str:
    """Returns the text, cut to at most `length` characters before a word that does not fit whole."""
    return text if len(text) <= length else without_last_word(text[: length + 1])


def without_last_word(text: str) -> str:
    """Returns the text up to its last space. If that is far away, cuts off as much as the longest secret can take."""
    far = max(len(text) - _LONGEST_SECRET, 0)
    at = max(text.rfind(space, far) for space in " \t\n\r")
    return text[: max(at, far)]


def printable_line(text: str, limit: int) -> str:
    """Returns the text as one line of at most `limit` characters, without control or misleading characters."""
    text = without_misleading(text)
    if not text.isprintable() or "  " in text:
        words = ("".join(filter(str.isprintable, word)) for word in text.split())
        text = " ".join(filter(None, words))
    return _cut(text.strip(), limit)


def longer_run(text: str, sign: str, *, at_least: int) -> str:
    """Returns more of a sign than a text has in a row anywhere, so that those do not end what begins with it."""
    return sign * max([at_least, *(len(run) + 1 for run in re.findall(f"{re.escape(sign)}++", text))])


def printable_text(text: str, limit: int) -> str:
    """Returns at most `limit` characters of the text with its line breaks, without control or misleading characters."""
    # Cutting first bounds the work on a long text of characters that are all removed.
    lines = text[: 4 * limit].replace("\r\n", "\n").replace("\r", "\n")
    return _cut(_UNPRINTABLE.sub("", without_misleading(lines)).strip(), limit)


def shortened(text: str, limit: int) -> str:
    """Returns the text, or its first `limit` characters at most and an ellipsis. It prefers to cut at a space or line
    break near the limit.
    """
    if len(text) <= limit:
        return text
    head = text[:limit]
    at = max(head.rfind("\n"), head.rfind(" "))
    return f"{(head[:at] if at >= limit * 4 // 5 else head).rstrip()}…"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
