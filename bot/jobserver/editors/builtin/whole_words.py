"""Whether a place of a text is a whole word, or lies inside of another: "install" in "installed" and "re-install"."""

import re
import unicodedata

from bot.jobserver.documents.page import Span

_JOINTS = frozenset("-\u2010\u2011'\u2019\u00ad\u200c\u200d\u2060*_~")
"""Hyphens, apostrophes, signs that nobody sees, and marks of emphasis: a word goes on behind them."""
_LONGEST_JOINT = 6
_DASH = "--"
_POSSESSIVE = re.compile(r"['\u2019]s(?!\w)")
_CONTRACTED = frozenset(
    ("he", "here", "how", "it", "let", "she", "that", "there", "what", "when", "where", "who", "why")
)
"""Their `'s` is a verb."""
_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese put no spaces between words."""


def is_whole(text: str, span: Span) -> bool:
    """Tells whether neither end of a place cuts a word; an end that is no letter cuts none."""
    return not (_is_cut_before(text, span.start) or _is_cut_after(text, span))


def _is_cut_before(text: str, start: int) -> bool:
    return _is_letter(text[start : start + 1]) and _goes_on(text, start - 1, step=-1)


def _is_cut_after(text: str, span: Span) -> bool:
    if not _is_letter(text[span.end - 1 : span.end]):
        return False
    if _POSSESSIVE.match(text, span.end) and text[span.start : span.end].lower() not in _CONTRACTED:
        return False
    return _goes_on(text, span.end, step=1)


def _goes_on(text: str, position: int, *, step: int) -> bool:
    near = text[position : position + 2] if step > 0 else text[max(0, position - 1) : position + 1]
    if near == _DASH:
        return False
    for index in range(position, position + step * _LONGEST_JOINT, step):
        sign = text[index] if 0 <= index < len(text) else ""
        if sign not in _JOINTS:
            return _is_letter(sign)
    return False


def _is_letter(sign: str) -> bool:
    is_part = sign.isalnum() or (sign != "" and unicodedata.category(sign).startswith("M"))
    return is_part and not _WITHOUT_SPACES.match(sign)
