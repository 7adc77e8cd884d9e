"""The forms in which a text can contain a secret. Pure, and linear in the length of the text."""

import base64
import html
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote

from bot.runtime.secrets.masking import SecretMasker
from bot.runtime.text import without_misleading

SHORTEST = 8
"""The shortest squeezed form that is searched for: shorter ones occur in many texts by chance."""
MOST_LAYERS = 4
WITHHELD = "[withheld: it contains a key of this job server in another form]"
_RUN = re.compile(rb"[\t\n\r\x20-\x7e]{8,}")
_SEPARATORS = bytes(range(33)) + b"\"'`\\,+\x7f"
"""What can separate the parts of a value: spaces, line breaks, string delimiters and operators in code."""
_LONG_ENTITY = re.compile(r"&#\w{8,}")
"""No character has such a number, and Python reads no number of thousands of digits."""
_ESCAPE = re.compile(r"\\(?:u\{?([0-9a-fA-F]{4,5})\}?|x([0-9a-fA-F]{2})|([nrt]))")
_TAG = re.compile(r"<!--[^<>]{0,200}-->|<(/?(?:br|div|d[dt]|h[1-6]|hr|li|p|pre|t[dhr])\b)?[^<>]{0,200}>")


class _Compatible(dict[int, str]):
    """Maps characters to the ASCII characters that Unicode holds compatible, and others to themselves.

    Each by itself: normalizing a text takes quadratic time in its accents.
    """

    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFKD", chr(code)).encode("ascii", errors="ignore").decode()
        return self.setdefault(code, plain or chr(code))


_COMPATIBLE = _Compatible()


def text_in(data: bytes) -> str:
    """Returns the text of a file without invisible characters; of UTF-16 and binary data, the ASCII in it."""
    plain = b"\n".join(_RUN.findall(data.replace(b"\0", b""))) if b"\0" in data else data
    return without_misleading(plain.decode(errors="replace"))


def layers(text: str) -> Iterator[str]:
    """Yields a text, then what remains of it when escapes and tags are taken away, again and again."""
    yield text
    for _ in range(MOST_LAYERS):
        before = text
        for step in (_without_escapes, _without_tags):
            shallower, text = text, step(text)
            if text != shallower:
                yield text
        if text == before:
            return


def _without_escapes(text: str) -> str:
    plain = unquote(html.unescape(_LONG_ENTITY.sub("", text)), errors="replace")
    return _ESCAPE.sub(_character, plain).translate(_COMPATIBLE)


def _character(escape: re.Match[str]) -> str:
    return "\n" if escape[3] else chr(int(escape[1] or escape[2], 16))


def _without_tags(text: str) -> str:
    """Only a tag that ends a line or a cell separates words."""
    return _TAG.sub(lambda tag: "\n" if tag[1] else "", text)


def squeezed(text: str) -> bytes:
    """Returns the ASCII characters of a text in lower case, without those that can separate the parts of a value."""
    return text.translate(_COMPATIBLE).encode("ascii", errors="ignore").lower().translate(None, _SEPARATORS)


def forms_of(value: str) -> frozenset[bytes]:
    """Returns the squeezed forms of a value: as it is, in hexadecimal digits, and what base64 of more contains."""
    forms = {squeezed(value)}
    for data in (value.encode(), value.encode("utf-16-le"), value.encode("utf-16-be")):
        forms.add(data.hex().encode())
        for shift in range(3):
            encoded = base64.b64encode(b"\0" * shift + data)[(8 * shift + 5) // 6 : 8 * (shift + len(data)) // 6]
            forms |= {squeezed(form.decode()) for form in (encoded, encoded.translate(bytes.maketrans(b"+/", b"-_")))}
    return frozenset(form for form in forms if len(form) >= SHORTEST)


@dataclass(frozen=True)
class OwnSecrets:
    """Secrets by their values. Implements `Masking`."""

    values: tuple[str, ...]

    @cached_property
    def _forms(self) -> tuple[tuple[str, frozenset[bytes]], ...]:
        return tuple((value, forms_of(value)) for value in self.values)

    def revealed(self, text: str) -> list[str]:
        """Returns the values that a text contains in any form."""
        contents = [squeezed(layer) for layer in layers(text)] if self.values else []
        return [value for value, forms in self._forms if any(form in each for each in contents for form in forms)]

    def known(self, text: str) -> str:
        return self._checked(SecretMasker(self.values).mask_own(text))

    def all(self, text: str) -> str:
        return self._checked(SecretMasker(self.values).mask(text).text)

    def _checked(self, masked: str) -> str:
        return WITHHELD if self.revealed(masked) else masked
