"""Detects a page's language by its path, its front matter, or its function words.

Counting function words is enough, since the only question is whether a page is certainly English.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from bot.jobserver.documents.page import ParsedPage, Span

_CODES = frozenset(
    ("ar", "bg", "bn", "br", "ca", "cn", "cs", "da", "de", "el", "en", "es", "et", "eu", "fa", "fi", "fr", "gl", "he",
     "hi", "hr", "hu", "id", "it", "ja", "jp", "ko", "kr", "lt", "lv", "ms", "nb", "nl", "no", "pl", "pt", "ro", "ru",
     "sk", "sl", "sr", "sv", "th", "tr", "tw", "uk", "vi", "zh")
)  # fmt: skip
_CODE = re.compile(r"(?P<code>[a-z]{2})(?:[-_][A-Za-z]{2,8})?")
_TRANSLATED_NAME = re.compile(r"(?P<name>.*)(?P<sign>[._-])(?P<code>[a-z]{2}(?:[-_][A-Za-z]{2,8})?)", re.DOTALL)
_OFTEN_TRANSLATED = ("readme", "contributing", "changelog", "index")
_WORD = re.compile(r"[^\W\d_]+")
_LOOKED_AT = 20_000
"""How many characters of prose are examined."""
_LEAST_SHARE = 0.08
"""The least share of function words in English; the lowest measured was 0.12, in API references."""
_SMALL_WORDS = (
    "the of and to is that for with this you are be it your from or can not if by when will at which have has into how "
    "its these their they was were but there than then we our should must only any each more other use used using see "
    "does do what where while new set add make"
)
_ENGLISH = frozenset(_SMALL_WORDS.split())
_SHARED = frozenset(("a", "an", "as", "do", "in", "is", "me", "no", "on", "or", "we", "was", "to", "not", "all"))
"""Words that English shares with other languages, and that therefore do not indicate those."""
_OTHERS = tuple(
    frozenset(words.split()) - _ENGLISH - _SHARED
    for words in (
        "el la los las de del que en un una y con para por se su es al lo como más este esta son puede o si sin",
        "le la les des du de un une et est en que qui pour dans par sur avec pas ce cette vous il au aux ou sont votre",
        "der die das und ist den von zu mit sich des auf für nicht ein eine dem im werden wird sie kann oder wenn",
        "o os as da do das dos de que em um uma e com para por se não ao na no mais é você ou são pode este",
        "il lo la gli le di che e un una con per si non del della dei in è sono da come nel alla o questo",
        "de het een en van dat op te zijn voor met niet aan er om ook als dan kan wordt worden deze of bij",
        "w i na z do się nie że jest to o jak dla po od są lub oraz przez",
        "och att det som en på är av för med den till inte om ett kan eller",
        "og er det som en på af for med til ikke den de et kan eller",
        "ve bir bu için ile da de olarak olan veya gibi daha",
        "dan yang di untuk dengan dari ini ke pada adalah atau tidak dapat",
        "a az és egy hogy nem is van meg ha vagy",
    )
)


def language_of_path(path: PurePosixPath) -> str | None:
    """Returns the language in a path such as `es/start.md`, `docs/zh-Hans/x.md` or `README.fr.md`."""
    for part in path.parts[:-1]:
        if (code := _code(part)) is not None:
            return code
    match = _TRANSLATED_NAME.fullmatch(path.stem)
    if match and (match["sign"] == "." or match["name"].lower() in _OFTEN_TRANSLATED):
        return _code(match["code"])
    return None


def is_translation(path: PurePosixPath) -> bool:
    """Tells whether a path names a language other than English."""
    return language_of_path(path) not in {None, "en"}


def _code(written: str) -> str | None:
    match = _CODE.fullmatch(written)
    return match["code"] if match and match["code"] in _CODES else None


def is_english(path: PurePosixPath, page: ParsedPage) -> bool:
    """Tells whether a page is certainly in English, by its path, its front matter and its words."""
    said = language_of_path(path) or _said(page)
    if said not in {None, "en"}:
        return False
    return _are_english(_words(page.text, _first(page.prose)))


def _said(page: ParsedPage) -> str | None:
    values: Mapping[str, object] = page.front_matter.values if page.front_matter else {}
    for key in ("lang", "language", "locale"):
        value = values.get(key)
        if isinstance(value, str) and value:
            return _CODE.sub(lambda match: match["code"], value.strip().lower())
    return None


def _first(prose: Iterable[Span]) -> list[Span]:
    taken, length = [], 0
    for span in prose:
        taken.append(span)
        length += span.end - span.start
        if length > _LOOKED_AT:
            break
    return taken


def _words(text: str, spans: Iterable[Span]) -> list[str]:
    places = (text[span.start : min(span.end, span.start + _LOOKED_AT)] for span in spans)
    return [word.lower() for place in places for word in _WORD.findall(place)]


def _are_english(words: list[str]) -> bool:
    english, other = _hits(words)
    foreign_letters = sum(not word.isascii() for word in words)
    return english > 2 * other and english >= _LEAST_SHARE * len(words) and foreign_letters < len(words) / 10


def _hits(words: list[str]) -> tuple[int, int]:
    english = sum(word in _ENGLISH for word in words)
    return english, max(sum(word in small for word in words) for small in _OTHERS)


def has_foreign_words(text: str) -> bool:
    """Tells whether a paragraph of an English page seems to be in another language, such as a quotation."""
    words = [word.lower() for word in _WORD.findall(text[:_LOOKED_AT])]
    english, other = _hits(words)
    return other > english or sum(not word.isascii() for word in words) > max(1, len(words) // 5)
